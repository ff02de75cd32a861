"""How the time of GPUs is parted: unions of what ran, and sums of idle time by cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpline.query.gpu_work import COMMUNICATION, COMPUTE, MEMORY, Gpu, Track, joined
from warpline.query.idle import CAUSES, Per, Seen, pieces
from warpline.query.intervals import covered

if TYPE_CHECKING:
    from warpline.query.report import Report
    from warpline.query.selection import Selection


@dataclass
class Spent:
    """How a GPU, or stream, spent its time (ns): `busy` and `idle`, by cause, add up to that from `seen.begin` to `seen.end`.

    `pieces`, `longest`: how many stretches of idle time have a cause, and how long the longest is.
    """

    seen: Seen
    idle: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    pieces: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    longest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))

    @property
    def span(self) -> int:
        """The time that was looked at."""
        return self.seen.end - self.seen.begin

    @property
    def busy(self) -> int:
        """The union of what ran."""
        return self.span - sum(self.idle.values())


def spent(report: Report, selection: Selection, per: Per) -> list[Spent]:
    """Return how GPUs (or streams) spent the selected time, by process, device and stream."""
    found: dict[tuple[int, int, int | None], Spent] = {}
    count = len(CAUSES)
    for part in pieces(report, selection, per=per):
        rows = [found.setdefault(seen[:3], Spent(seen)) for seen in part.places]
        cell = part.place.astype(np.int64) * count + part.cause
        length = part.end - part.start
        total, longest = np.zeros(len(rows) * count, np.int64), np.zeros(len(rows) * count, np.int64)
        number = np.bincount(cell, minlength=len(total))
        order = np.argsort(cell.astype(np.int16) if len(total) < 1 << 15 else cell, kind="stable")
        some = np.flatnonzero(number)
        if len(some):
            first = (np.cumsum(number) - number)[some]
            total[some] = np.add.reduceat(length[order], first)
            longest[some] = np.maximum.reduceat(length[order], first)
        for where in some.tolist():
            row, cause = rows[where // count], CAUSES[where % count]
            row.idle[cause] += int(total[where])
            row.pieces[cause] += int(number[where])
            row.longest[cause] = max(row.longest[cause], int(longest[where]))
    return [found[key] for key in sorted(found, key=lambda key: (key[0], key[1], -1 if key[2] is None else key[2]))]


class Parted(NamedTuple):
    """The time of a GPU from its first to its last operation, ns, in parts that add up to `span`."""

    span: int
    compute: int
    communication: int
    memory: int
    idle: int


def parted(track: Track) -> Parted:
    """Part the time of a track: what overlaps counts as compute, else as communication, else as memory."""
    compute = _covered(track.in_role(COMPUTE))
    kernels = _covered(track.in_role(COMPUTE, COMMUNICATION))
    busy = _covered(track)
    span = int(track.end.max() - track.start[0])
    return Parted(span, compute, kernels - compute, busy - kernels, span - busy)


class Overlap(NamedTuple):
    """Communication, or copies (ns, unions): `total` = `hidden` while kernels computed + `exposed`; `alone`: nothing else ran at all."""

    total: int
    hidden: int
    exposed: int
    alone: int


def overlap(gpu: Gpu, role: int, stream: int | None = None, *, one: bool = False) -> Overlap | None:
    """Return how COMMUNICATION or MEMORY of a GPU overlaps with what else it did; None where there is none.

    `one`: only what is on `stream` is looked at; the rest of it on other streams is something else that runs.
    """
    everything = [(name, track, track.in_role(role)) for name, track in gpu.streams.items()]
    wanted = [part for name, _, part in everything if len(part) and (not one or name == stream)]
    if not wanted:
        return None
    other = [
        track.in_role(*({COMPUTE, COMMUNICATION, MEMORY} - {role})) if not one or name == stream else track for name, track, _ in everything
    ]
    mine = joined(wanted)
    compute = joined([track.in_role(COMPUTE) for track in gpu.streams.values()])
    rest = joined(other)
    total, computing, others = _covered(mine), _covered(compute), _covered(rest)
    hidden = total + computing - _covered(joined([mine, compute]))
    return Overlap(total, hidden, total - hidden, _covered(joined([mine, rest])) - others)


def _covered(track: Track) -> int:
    return covered(track.start, track.end)
