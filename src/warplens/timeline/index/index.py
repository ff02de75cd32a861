"""Opens the index of lanes, builds a missing one, and answers queries.

Times are ns on the report's clock.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.timeline.index import building
from warplens.timeline.index.answers import Cells, Hit, Sums, Viewport
from warplens.timeline.index.layers import TABLES
from warplens.timeline.index.layout import HEADER, NAME, TRACK, Header
from warplens.timeline.index.names import IndexNames
from warplens.timeline.index.track_numbers import KEYS, numbers

if TYPE_CHECKING:
    from warplens.report.store import Part, Stored

_FAR = 1 << 61  # ns: times beyond are cut
_KEPT = 1 << 28  # bytes of the file in our memory


@dataclass(frozen=True)
class IndexTrack:
    """A track.

    `number`: within the index; `key`: process, thread, device, kind, … as its layer has them.

    `lanes` is how many it has, `events` how many slices; `busy`: how long at least one ran, `begin` and `end`: when they did (ns).
    """

    number: int
    layer: str
    key: dict[str, int | str]
    lanes: int
    events: int
    busy: int
    begin: int
    end: int


class _Mapped:
    """The file in memory; it goes when nobody uses it any more."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as file:
            begin = file.read(HEADER)
            self.header = Header.parse(begin, file.seek(0, 2))
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.bytes = np.frombuffer(self._map, np.uint8)
        self.native = native.make("index_open", self.bytes, self.header.places)
        self._before = _resident()

    def trim(self) -> None:
        """Give the pages of slices back to the system when they have become many.

        The file's own copy in memory stays.
        """
        if _resident() - self._before > _KEPT and hasattr(mmap, "MADV_DONTNEED"):
            offset, size = self.header.sections["slices"]
            begin = offset // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_DONTNEED, begin, offset + size - begin)

    def section(self, name: str, kind: Any) -> npt.NDArray[Any]:
        offset, size = self.header.sections[name]
        width = np.dtype(kind).itemsize
        return self.bytes[offset : offset + size // width * width].view(kind)


class LaneIndex:
    """The index of one part. Safe to ask from several threads at once."""

    def __init__(self, path: Path, shift: int = 0) -> None:
        """Open the file.

        `shift`: what its times are behind the report's clock (ns). Raises ReportError if it
        cannot be read.
        """
        self.path, self.shift = path, shift
        try:
            self._mapped: _Mapped | None = _Mapped(path)
            self.head = self._read_head(self._mapped)
            self.tracks = self._read_tracks(self._mapped)
            self.names = _read_names(self._mapped, [str(name) for name, *_ in self.head["layers"]])
        except (OSError, ValueError, LookupError, TypeError, pa.ArrowException) as error:
            raise ReportError(
                f"{path} is not a readable index: {error}. Remove it; the next `warplens view` makes "
                "it again."
            ) from error
        self._all = np.arange(len(self.tracks), dtype=np.uint32)

    @classmethod
    def open(
        cls, store: Stored, part: Part, cache: Path | None, progress: building.Progress | None = None
    ) -> LaneIndex:
        """Open the index of a part.

        Where there is none, or one of other files, it is made: in one's own report, or in the
        folder `cache`.

        Raises ReportError if the tables cannot be read, or the index can be written nowhere.
        """
        manifest = part.manifest
        inside = building.path_of(store.path, manifest)
        cached = [building.cached(cache, store.path, manifest)] if cache is not None else []
        for table in TABLES:
            store.pieces(table)  # looks at the files
        try:
            wanted = building.state(store.path, manifest)
        except OSError as error:
            raise ReportError(f"cannot read {error.filename}: {error.strerror}") from error
        for path in (inside, *cached):
            index = _of(path, part.shift, wanted)
            if index is not None:
                return index
        failed: Exception | None = None
        places = [inside, *cached] if store.own else cached
        for path in places:
            try:
                building.build(store.path, manifest, path, progress=progress)
                return cls(path, part.shift)
            except OSError as error:
                failed = error
            except (pa.ArrowException, ValueError) as error:
                raise ReportError(
                    f"{store.path}: the tables of the part {manifest.id} cannot be read: {error}"
                ) from error
        raise ReportError(
            f"cannot write the index of {store.path}: {failed or 'another user owns the report'}; it "
            f"cannot be written to {' or '.join(map(str, places)) or 'a cache'}"
        ) from failed

    def viewport(
        self, begin: int, end: int, width: int, tracks: Sequence[int] | None = None, limit: int = 8192
    ) -> Viewport:
        """Return what is to be drawn of some tracks (None: all) in [begin, end) on `width` pixels.

        At most `limit` rectangles, or one for each lane.
        """
        mapped = self._open()
        asked = self._numbers(tracks)
        begin, end = _cut(begin), max(_cut(end), _cut(begin))
        grain = (end - begin) // max(width, 1)
        begins, ends = _cut(begin - self.shift), _cut(end - self.shift)
        rects = native.make("index_viewport", mapped.native, begins, ends, grain, asked, max(limit, 1))
        facts = np.zeros(2, np.int64)
        native.call("index_rects_facts", rects, facts)
        lanes, grain = facts.tolist()
        runs = np.empty((lanes, 4), np.uint32)
        native.call("index_runs", rects, runs)
        batch = native.call("index_rects", rects)
        rects.close()
        drawn = dict(zip(batch.schema.names, map(pa.Array.to_numpy, batch.columns), strict=True))
        drawn["start"] = drawn["start"] + self.shift
        mapped.trim()
        return Viewport(begin, end, grain, runs=runs, **drawn)

    def find(
        self,
        names: Sequence[int] | npt.NDArray[Any],
        begin: int,
        end: int,
        limit: int,
        backward: bool = False,
        tracks: Sequence[int] | None = None,
    ) -> list[Hit]:
        """Return the first slices with one of the names that begin in [begin, end), in order of begin.

        `backward`: the last ones, last first.
        """
        count, room = self._find(names, begin, end, limit=limit, backward=backward, tracks=tracks)
        return room.hits(count, self.shift)

    def count(self, names: Sequence[int] | npt.NDArray[Any], begin: int, end: int, limit: int) -> int:
        """Return how many slices with one of the names begin in [begin, end), up to `limit`."""
        return self._find(names, begin, end, limit=limit, backward=False, tracks=None)[0]

    def _find(
        self,
        names: Sequence[int] | npt.NDArray[Any],
        begin: int,
        end: int,
        limit: int,
        backward: bool,
        tracks: Sequence[int] | None,
    ) -> tuple[int, _Room]:
        mapped = self._open()
        wanted, asked = numbers(names), self._numbers(tracks)
        limit = max(min(limit, int(self.names.counts[wanted[wanted < len(self.names)]].sum())), 0)
        room = _Room(limit)
        what = wanted, _cut(begin - self.shift), _cut(end - self.shift), asked, int(backward)
        count = native.call("index_find", mapped.native, *what, *room.arrays)
        mapped.trim()
        return count, room

    def at(self, track: int, lane: int, time: int) -> Hit | None:
        """Return the slice of a lane that is open at a time, None where nothing is."""
        room = _Room(1)
        if not (0 <= track < 1 << 32 and 0 <= lane < 1 << 32):
            return None
        count = native.call(
            "index_at", self._open().native, track, lane, _cut(time - self.shift), *room.arrays
        )
        return next(iter(room.hits(count, self.shift)), None)

    def locate(self, layer: str, process: int, row: int, start: int | None = None) -> Hit | None:
        """Return where a row of a layer's table lies, by the low half of its id.

        `start` (when it begins) makes that faster.
        """
        tracks = numbers(
            track.number
            for track in self.tracks
            if track.layer == layer and track.key.get("process") == process
        )
        room = _Room(1)
        hint = None if start is None else np.array([_cut(start - self.shift)], np.int64)
        count = native.call("index_locate", self._open().native, tracks, row & 0xFFFFFFFF, hint, *room.arrays)
        return next(iter(room.hits(count, self.shift)), None)

    def busy(
        self, tracks: Sequence[int] | None, begin: int, end: int
    ) -> tuple[npt.NDArray[np.float64], Int64Array]:
        """Return the busy share of [begin, end) of each track, and how many slices overlap it."""
        asked = self._numbers(tracks)
        busy, events = np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
        span = _cut(begin - self.shift), _cut(end - self.shift)
        native.call("index_load", self._open().native, asked, *span, busy, events)
        return busy / max(end - begin, 1), events

    def sums(self, tracks: Sequence[int] | None, begin: int, end: int) -> Sums:
        """Return for each name how many slices overlap [begin, end), and their time in it. Reads every slice."""
        asked = self._numbers(tracks)
        total, longest, count = (np.zeros(len(self.names), np.int64) for _ in range(3))
        span = _cut(begin - self.shift), _cut(end - self.shift)
        mapped = self._open()
        native.call("index_sums", mapped.native, asked, *span, total, longest, count)
        mapped.trim()
        return Sums(count, total, longest)

    def cells(
        self,
        lanes: Sequence[tuple[int, int]],
        begin: int,
        end: int,
        columns: int,
        groups: npt.NDArray[np.uint32],
    ) -> Cells:
        """Return the slices in each of `columns` columns of [begin, end) in a row. Some lanes (track, lane) make the row.

        `groups`: of each name the number that it counts as, NONE: it does not count. Looks at every slice.
        """
        mapped = self._open()
        wanted = np.ascontiguousarray(np.array(lanes, np.uint32).reshape(-1, 2))
        counted = np.ascontiguousarray(groups, np.uint32)
        times, counts, about = (
            np.empty((columns, 3)),
            np.empty((columns, 3), np.int64),
            np.empty((columns, 5), np.uint32),
        )
        span = _cut(begin - self.shift), _cut(end - self.shift), columns
        count = native.call("index_cells", mapped.native, wanted, *span, counted, times, counts, about)
        mapped.trim()
        column, group, row, name, track = about[:count].T
        busy, covered = np.minimum(times[:count, :2] / ((end - begin) / columns), 1.0).T
        number, begun, start = counts[:count].T
        return Cells(
            column,
            busy,
            covered,
            number=number,
            begun=begun,
            group=group,
            row=row,
            name=name,
            track=track,
            start=start + self.shift,
        )

    def close(self) -> None:
        """Let the file go; questions that are being answered are answered first."""
        self._mapped = None

    def __enter__(self) -> LaneIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> _Mapped:
        mapped = self._mapped
        if mapped is None:
            raise ValueError("the index is closed")
        return mapped

    def _numbers(self, tracks: Sequence[int] | None) -> npt.NDArray[np.uint32]:
        return self._all if tracks is None else numbers(tracks)

    def _read_head(self, mapped: _Mapped) -> dict[str, Any]:
        head = json.loads(bytes(mapped.section("head", np.uint8)))
        if not isinstance(head, dict):
            raise ValueError("its head is not a JSON object")
        return head

    def _read_tracks(self, mapped: _Mapped) -> tuple[IndexTrack, ...]:
        records, keys = (
            mapped.section("tracks", TRACK),
            mapped.section("keys", np.int64).reshape(-1, 1 + KEYS),
        )
        if len(records) != len(keys):
            raise ValueError("it has a different number of tracks and keys")
        layers = [(str(name), tuple(map(str, names))) for name, *names in self.head["layers"]]
        words = [str(word) for word in self.head["words"]]
        tracks = []
        for number, (record, (layer, *key)) in enumerate(zip(records.tolist(), keys.tolist(), strict=True)):
            begin, end, busy, events, _, lanes, _ = record
            name, names = layers[layer]
            values = {
                one: words[value] if one in _TEXTS else value
                for one, value in zip(names, key, strict=False)
                if value >= 0
            }
            tracks.append(
                IndexTrack(
                    number,
                    name,
                    values,
                    lanes=lanes,
                    events=events,
                    busy=busy,
                    begin=begin + self.shift,
                    end=end + self.shift,
                )
            )
        return tuple(tracks)


_TEXTS = ("kind", "group")  # keys of tracks that are texts


class _Room:
    """Buffers for the library's results."""

    def __init__(self, limit: int) -> None:
        self.arrays = (
            np.empty((limit, 2), np.uint32),
            np.empty((limit, 2), np.int64),
            np.empty((limit, 3), np.uint32),
        )

    def hits(self, count: int, shift: int) -> list[Hit]:
        places, times, about = (array[:count].tolist() for array in self.arrays)
        return [
            Hit(track, lane, start + shift, duration=duration, name=name, row=row, link=link)
            for (track, lane), (start, duration), (name, row, link) in zip(places, times, about, strict=True)
        ]


def _resident() -> int:
    """Return how many bytes of files are in our memory; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except (OSError, ValueError, LookupError):
        return 0


def _cut(time: int) -> int:
    return max(-_FAR, min(int(time), _FAR + 1))


def _of(path: Path, shift: int, wanted: dict[str, Any]) -> LaneIndex | None:
    """Open an index if it is there, whole, and of these files."""
    if not path.is_file():
        return None
    try:
        index = LaneIndex(path, shift)
    except ReportError:
        return None
    if all(index.head.get(name) == value for name, value in wanted.items()):
        return index
    index.close()
    return None


def _read_names(mapped: _Mapped, layers: list[str]) -> IndexNames:
    offsets, texts = mapped.section("offsets", np.int64), mapped.section("texts", np.uint8)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] > len(texts) or (np.diff(offsets) < 0).any():
        raise ValueError("its texts lie outside of it")
    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(texts))
    array.validate(full=True)
    return IndexNames(
        mapped.section("names", NAME), array, mapped.section("layers", np.uint32), layer_names=layers
    )
