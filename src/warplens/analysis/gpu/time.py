"""Divides the time of GPUs: unions of operations, and sums of idle time by cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warplens.analysis.gpu.idle import CAUSES, ObservedPlace, Per, pieces
from warplens.analysis.gpu.work import COMMUNICATION, COMPUTE, MEMORY, ROLES, GpuWork, WorkTrack
from warplens.analysis.intervals import Cover, covered

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection


@dataclass
class Spent:
    """The time of a GPU, or stream (ns).

    `busy` and `idle`, by cause, add up to that from `seen.begin` to `seen.end`.

    `pieces`, `longest`: how many stretches of idle time have a cause, and how long the longest is.
    """

    seen: ObservedPlace
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
    spent_on: dict[tuple[int, int, int | None], Spent] = {}
    count = len(CAUSES)
    for part in pieces(report, selection, per=per):
        rows = [spent_on.setdefault(seen[:3], Spent(seen)) for seen in part.places]
        # One cell for each (row, cause). Sorted by cell, `reduceat` sums and maximizes each cell in one pass; `first` is where each begins.
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
    return [
        spent_on[key]
        for key in sorted(spent_on, key=lambda key: (key[0], key[1], -1 if key[2] is None else key[2]))
    ]


class Parted(NamedTuple):
    """The time of a GPU from its first to its last operation, ns, in parts that add up to `span`."""

    span: int
    compute: int
    communication: int
    memory: int
    idle: int


def parted(track: WorkTrack) -> Parted:
    """Part the time of a track: what overlaps counts as compute, else as communication, else as memory."""
    compute = _cover([track], COMPUTE).total
    kernels = _cover([track], COMPUTE, COMMUNICATION).total
    busy = covered(track.start, track.end)
    span = int(track.end.max() - track.start[0])
    return Parted(span, compute, kernels - compute, memory=busy - kernels, idle=span - busy)


class GpuOverlap(NamedTuple):
    """Communication, or copies (ns, unions).

    `total` = `hidden` while kernels computed + `exposed`; `alone`: nothing else ran at all.
    """

    total: int
    hidden: int
    exposed: int
    alone: int


def overlaps(gpu: GpuWork, *, per_stream: bool = False) -> Iterator[tuple[int | None, int, GpuOverlap]]:
    """Yield the overlap of COMMUNICATION and MEMORY of a GPU with its other work.

    Stream, which of them, and how, if there is any.

    `per_stream`: of each stream by itself; the rest of it, on other streams, is something else that runs. Else the stream is None.
    """
    tracks = list(gpu.streams.items())
    compute = _cover([track for _, track in tracks], COMPUTE)
    for stream in [name for name, _ in tracks] if per_stream else [None]:
        own = [track for name, track in tracks if not per_stream or name == stream]
        others = [track for name, track in tracks if per_stream and name != stream]
        for role in (COMMUNICATION, MEMORY):
            mine = _cover(own, role)
            if mine.total:
                hidden = int(compute.within(mine.start, mine.end).sum())
                rest = _cover(own, COMPUTE, COMMUNICATION + MEMORY - role)
                if others:
                    edges = [(rest.start, rest.end), *((track.start, track.end) for track in others)]
                    rest = Cover(*(np.concatenate(column) for column in zip(*edges, strict=True)))
                beside = int(rest.within(mine.start, mine.end).sum())
                yield (
                    stream,
                    role,
                    GpuOverlap(mine.total, hidden, mine.total - hidden, alone=mine.total - beside),
                )


def _cover(tracks: Sequence[WorkTrack], *roles: int) -> Cover:
    kept = [np.isin(ROLES, roles)[track.kind] for track in tracks]
    start, end = (
        np.concatenate([getattr(track, name)[some] for track, some in zip(tracks, kept, strict=True)])
        for name in ("start", "end")
    )
    return Cover(start, end)
