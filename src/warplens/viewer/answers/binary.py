"""Binary answers: rectangles and plots as columns of little-endian numbers.

A browser reads them without parsing.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.viewer import limits

if TYPE_CHECKING:
    from warplens.timeline.index import IndexNames, Viewport
    from warplens.timeline.lanes import Lanes

RECTS, PLOTS = b"WLV1", b"WLP1"
VERSION = 1
NO_COLOR = 0xFFFFFFFF
_COLUMNS = (
    ("start", "<f8"),
    ("duration", "<f8"),
    ("name", "<u4"),
    ("row", "<u4"),
    ("slices", "<u4"),
    ("busy", "<f4"),
    ("link", "<u4"),
)
# A clock that counts from 1970 has more digits than a float: times become floats relative to the origin.
_JOINED = (("start", "<i8"), *_COLUMNS[1:])


@dataclass(frozen=True)
class Rects:
    """Rectangles of tracks; `lanes`: rows of track, lane, first, count.

    `names`: text in UTF-8 and colour of each number in `name`.
    """

    grain: float
    lanes: npt.NDArray[np.uint32]
    columns: dict[str, npt.NDArray[Any]]
    names: list[tuple[bytes, int]]

    @classmethod
    def seen(
        cls, lanes: Lanes, begin: int, end: int, width: int, tracks: Collection[int], limit: int
    ) -> Rects:
        """Return the view of some tracks in [begin, end) (ns) on `width` columns. Together about `limit` rectangles."""
        return cls.joined(
            [
                (base, index.names, view)
                for base, index, view in lanes.viewports(begin, end, width, tracks=tracks, limit=limit)
            ]
        )

    @classmethod
    def joined(cls, views: Sequence[tuple[int, IndexNames, Viewport]]) -> Rects:
        """Put the answers of several indexes together.

        Their tracks begin at the number before each.
        """
        lanes, columns = [np.empty((0, 4), np.uint32)], {name: [np.empty(0, kind)] for name, kind in _JOINED}
        names: list[tuple[bytes, int]] = []
        first, grain = 0, 0.0
        for base, table, view in views:
            runs = np.array(view.runs, np.uint32).reshape(-1, 4)
            runs[:, 0] += base
            runs[:, 2] += first
            lanes.append(runs)
            used, place = np.unique(np.asarray(view.name), return_inverse=True)
            for name, kind in _JOINED:
                values = place + len(names) if name == "name" else getattr(view, name)
                columns[name].append(np.asarray(values).astype(kind, copy=False))
            names += [_name(table, number) for number in used.tolist()]
            first += len(place)
            grain = max(grain, float(view.grain))
        return cls(
            grain,
            np.concatenate(lanes),
            {name: np.concatenate(parts) for name, parts in columns.items()},
            names,
        )

    def encoded(self, begin: float, end: float, origin: int) -> bytes:
        """Return the bytes of the answer.

        `begin` and `end` as asked, the rectangles' times from `origin`.
        """
        columns = dict(self.columns, start=self.columns["start"] - origin)
        texts = [text for text, _ in self.names]
        offsets = np.cumsum([0, *map(len, texts)]).astype("<u4")
        head = struct.pack(
            "<4s5I3d",
            RECTS,
            VERSION,
            len(self.lanes),
            len(columns["start"]),
            len(texts),
            int(offsets[-1]),
            begin,
            end,
            self.grain,
        )
        parts = [
            head,
            self.lanes.astype("<u4").tobytes(),
            *(columns[name].astype(kind, copy=False).tobytes() for name, kind in _COLUMNS),
        ]
        colors = np.array([color for _, color in self.names], "<u4")
        return b"".join([*parts, colors.tobytes(), offsets.tobytes(), *texts])


def plots(
    series: Sequence[tuple[int, tuple[npt.NDArray[np.float64], ...]]], begin: float, end: float, origin: int
) -> bytes:
    """Return the bytes of plots.

    Of each its track, and columns time (ns, the report's clock), low, high and last.
    """
    heads, first = [], 0
    for track, (time, *_) in series:
        heads.append((track, first, len(time), 0))
        first += len(time)
    head = struct.pack("<4s3I2d", PLOTS, VERSION, len(series), first, begin, end)
    columns = [np.concatenate([np.empty(0), *(values[place] for _, values in series)]) for place in range(4)]
    columns[0] = columns[0] - float(origin)
    return b"".join(
        [
            head,
            np.array(heads, "<u4").tobytes(),
            *(column.astype("<f8", copy=False).tobytes() for column in columns),
        ]
    )


def _name(table: IndexNames, number: int) -> tuple[bytes, int]:
    color = table.color(number)
    return short(table.text(number)), NO_COLOR if color is None else int(color) & 0xFFFFFF


def short(text: str) -> bytes:
    """Return a name in UTF-8 of limited length, cut between characters."""
    whole = text[: limits.NAME + 1].encode("utf-8", "replace")
    if len(whole) <= limits.NAME and len(text) <= limits.NAME:
        return whole
    return whole[: limits.NAME - 3].decode("utf-8", "ignore").encode() + "…".encode()
