"""Determines the operation of another stream that an operation waited for.

Where waits for events were recorded (`syncs`, `cuda_events`), they say it: the first operation launched into a stream after
`cudaStreamWaitEvent` waits for the last one that was launched into the other stream before `cudaEventRecord`. Calls have ids in the order
in which they began, so ids stand for that order. If nothing says it, an operation of another stream that ended shortly before is
taken for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.work import Codes, GpuWork
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

SHORTLY = 10_000  # ns: longer than from the end of one operation to the start of the next that waited for it
NEVER = -(1 << 62)
GUESSED = 0x80  # on a kind: nothing says so, but time
# A wait for an event belongs to the latest recording of that event before it. Ids of calls grow
# with time, so the ASOF join takes the greatest `e.api` below `w.api`.
_WAITS = """
SELECT w.process, wd.device, w.stream, w.api, ed.device AS from_device, e.stream AS from_stream, e.api AS from_api
FROM (SELECT * FROM syncs WHERE kind = 'Stream wait event' AND api IS NOT NULL AND stream IS NOT NULL) w
ASOF JOIN (SELECT * FROM cuda_events WHERE api IS NOT NULL) e ON w.process = e.process AND w.event = e.event AND w.api > e.api
LEFT JOIN contexts wd ON w.process = wd.process AND w.context = wd.context
LEFT JOIN contexts ed ON e.process = ed.process AND e.context = ed.context
"""


@dataclass
class Dependencies:
    """The wait before each operation of a track: its end (NEVER: unknown) and its kind.

    GUESSED may be added to the kind.
    """

    end: Int64Array
    kind: Codes

    @classmethod
    def nothing(cls, count: int) -> Dependencies:
        """Return the dependencies of `count` operations of which nothing is known."""
        return cls(np.full(count, NEVER, np.int64), np.zeros(count, np.uint8))


Waits = dict[int, list[tuple[int | None, int, int, int | None, int, int]]]


def recorded(report: Report) -> Waits:
    """Return the waits of streams for events by process.

    Device, stream and call of the wait, device, stream and call of the record.
    """
    if not report.tables["syncs"] or not report.tables["cuda_events"]:
        return {}
    waits: Waits = {}
    for process, *wait in zip(*(column.to_pylist() for column in report.sql(_WAITS).columns), strict=True):
        waits.setdefault(process, []).append(tuple(wait))
    return waits


def by_events(gpus: list[GpuWork], waits: Waits) -> dict[tuple[int, int | None], Dependencies]:
    """Return what is recorded of the streams (device, stream) of the GPUs of one process that waited."""
    streams = {(gpu.device, stream): track for gpu in gpus for stream, track in gpu.streams.items()}
    only: dict[int | None, list[tuple[int, int | None]]] = {}
    for key in streams:
        only.setdefault(key[1], []).append(key)
    # Ids of calls grow with time. The running maximum makes the column sorted where an operation's call is not known (-1).
    order = {key: np.maximum.accumulate(track.api) for key, track in streams.items()}
    held_streams: dict[tuple[int, int | None], Dependencies] = {}

    def key_of(device: int | None, stream: int) -> tuple[int, int | None] | None:
        if device is not None:
            return (device, stream) if (device, stream) in streams else None
        return only[stream][0] if len(only.get(stream, [])) == 1 else None

    pairs: dict[tuple[tuple[int, int | None], tuple[int, int | None]], list[tuple[int, int]]] = {}
    for device, stream, api, from_device, from_stream, from_api in waits.get(gpus[0].process, []):
        waiter, other = key_of(device, stream), key_of(from_device, from_stream)
        if waiter is not None and other is not None and waiter != other:
            pairs.setdefault((waiter, other), []).append((api, from_api))
    for (waiter, other), calls in pairs.items():
        array = np.array(calls, np.int64)
        # Behind the wait: the first operation launched after it. Before the record: the last operation launched before it.
        first = np.searchsorted(order[waiter], array[:, 0], side="right")
        last = np.searchsorted(order[other], array[:, 1], side="left") - 1
        some = np.flatnonzero((first < len(order[waiter])) & (last >= 0))
        waits_of_stream, ends = (
            held_streams.setdefault(waiter, Dependencies.nothing(len(streams[waiter]))),
            streams[other].end[last[some]],
        )
        latest = np.argsort(
            ends, kind="stable"
        )  # of several waits of one operation, the last to end is written last
        for_op, from_op, ends = first[some][latest], last[some][latest], ends[latest]
        later = ends > waits_of_stream.end[for_op]
        waits_of_stream.end[for_op[later]], waits_of_stream.kind[for_op[later]] = (
            ends[later],
            streams[other].kind[from_op[later]],
        )
    return held_streams


def shortly_before(gpu: GpuWork) -> tuple[Int64Array, Codes]:
    """Return when the operations of a GPU ended, sorted, and their kinds: what `guessed` looks in."""
    end, kind = (
        np.concatenate([getattr(track, name) for track in gpu.streams.values()]) for name in ("end", "kind")
    )
    order = np.argsort(end, kind="stable")
    return end[order], kind[order]


def guessed(
    known: Dependencies, begin: Int64Array, end: Int64Array, ended: tuple[Int64Array, Codes]
) -> Dependencies:
    """Add guesses for operations after gaps (begin, end): the work that ended shortly before them.

    No operation of the same stream ends in a gap, so it was another stream's.
    """
    place = np.searchsorted(ended[0], end, side="right") - 1
    last = ended[0][np.maximum(place, 0)]
    # A guess needs an operation that ended inside the gap and at most SHORTLY before its end; recorded waits take precedence.
    some = (known.end <= begin) & (place >= 0) & (last > begin) & (last >= end - SHORTLY)
    return Dependencies(
        np.where(some, last, known.end),
        np.where(some, ended[1][np.maximum(place, 0)] | np.uint8(GUESSED), known.kind),
    )
