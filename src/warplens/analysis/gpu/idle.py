"""Idle time of GPUs by cause.

Every stretch gets one cause, and the causes of a GPU add up to its idle time.

A gap is the time between two operations of a GPU (or stream) in which none runs. The call that launched the operation that ended the gap
parts it. *Before that call began*, the host was late:

- `sync-bound`: its thread was in a call that waits for the GPU (`…Synchronize`, a copy that is not asynchronous, or of pageable memory,
  `cudaFree`), or came late because of one: a call that was waiting when the gap began kept the host from running ahead, so the time after
  its return counts as well, up to what it had waited before the gap, and up to 1 ms. Longer times are
  other work.
- `host-bound`: the rest. The thread did something else.

*From then on*, the operation was launched and had not begun:

- `copy-bound`, `collective wait`, `dependency`: up to the end of the awaited work of another stream: a copy, a communication kernel,
  or other work (see `dependencies`). The time in the call of a copy of pageable memory is `copy-bound`, too: it is staged by the host.
- `launch-bound`: the rest: the call itself, and what the driver and the GPU need until the work begins.
- `unknown`: that rest, if it had been launched before the gap began and still took more than 50 us: something held it that the report
  does not show, as a host function in its stream. And every gap whose call is not in the report.

`head` and `tail` are the time before the first and after the last operation. Where recording begins in the middle of a run, the first
operation waits for work that was launched before: more than 1 ms after its call had returned, that is `earlier work`, not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.analysis.gpu.api_calls import ApiCalls
from warplens.analysis.gpu.dependencies import Dependencies, by_events, guessed, recorded, shortly_before
from warplens.analysis.gpu.gap_causes import CAUSES, EARLIER, HEAD, STARTS, TAIL, Gaps
from warplens.analysis.gpu.work import STAGED, Codes, GpuWork, Place, WorkTrack, gpus, order_of
from warplens.arrays import Int64Array
from warplens.storage.memory import give_back

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

__all__ = ["CAUSES", "Per", "IdleSpans", "ObservedPlace", "idle", "pieces"]
_AT_ONCE = 1 << 20  # gaps that are looked at together

Per = Literal["device", "stream"]


class ObservedPlace(NamedTuple):
    """A GPU, or stream, that was looked at, from `begin` to `end`.

    `stretches`: how often it was busy without a gap, the `longest`: ns.
    """

    process: int
    device: int
    stream: int | None
    begin: int
    end: int
    operations: int
    stretches: int
    longest: int


@dataclass
class IdleSpans:
    """Stretches of idle time as arrays of one length.

    `place`: position in `places`; `cause`: in CAUSES; `api`, `thread`: -1 for none.

    `gap`: which gap it is a piece of, `api` and `thread`: the call that ended that, `waits`: that call had returned when it began.
    """

    places: list[ObservedPlace]
    place: npt.NDArray[np.int32]
    start: Int64Array
    end: Int64Array
    cause: Codes
    api: Int64Array
    thread: Int64Array
    waits: npt.NDArray[np.bool_]
    gap: Int64Array


def idle(report: Report, selection: Selection, *, per: Per = "device", longer_than: int = 0) -> pa.Table:
    """Return every stretch in which a GPU of a process (or a stream) did nothing, cut by cause.

    Args:
        report: the report.
        selection: which part of it; heads and tails are those in it.
        per: `device`: nothing ran on any stream; `stream`: each stream for itself.
        longer_than: ns; only gaps that last longer.

    Returns:
        process, device, stream (null per device), start, end (ns, the report's clock), cause (one of CAUSES), api, thread (the call that
        ended the gap and who made it; null if it is not known), waits (it had returned before the gap began), gap (number: pieces
        of one gap have one). By process, device, stream and start.
    """
    parts = [_rows(part) for part in pieces(report, selection, per=per, longer_than=longer_than)]
    rows = pa.concat_tables(parts) if parts else _SCHEMA.empty_table()
    order = [(name, "ascending") for name in ("process", "device", "stream", "start", "end")]
    return rows.unify_dictionaries().combine_chunks().sort_by(order)


def pieces(
    report: Report, selection: Selection, *, per: Per = "device", longer_than: int = 0
) -> Iterator[IdleSpans]:
    """Yield what `idle` returns in portions that fit into memory, in no order.

    Each process has one at least, which may be empty.
    """
    calls, waits = ApiCalls(report), recorded(report)
    begin, finish = selection.window(report) or report.span
    number = 0
    work = gpus(report, selection, classes=per == "stream" or bool(waits))
    for process, own in groupby(work, key=lambda gpu: gpu.process):
        gaps = _ProcessGaps(longer_than)
        works = list(own)
        dependencies = by_events(works, waits) if process in waits else {}
        staged = [
            piece.api[piece.kind == STAGED]
            for gpu in works
            for pieces in gpu.parts.values()
            for piece in pieces
        ]
        while works:
            gpu = works.pop(0)
            if per == "device":
                known, track = _together(gpu, dependencies), gpu.together()
                gpu.parts.clear()  # they are half of all memory
                gaps.add((process, gpu.device, None), track, known, None, begin, finish)
                del track, known
                continue
            streams = gpu.streams
            ended = shortly_before(gpu) if len(streams) > 1 else None
            for stream, track in streams.items():
                gaps.add(
                    (process, gpu.device, stream),
                    track,
                    dependencies.get((gpu.device, stream)),
                    ended,
                    begin,
                    finish,
                )
        del gpu
        give_back()
        synchronous = calls.waits(process, np.unique(np.concatenate(staged)))
        for portion in gaps.portions(calls, synchronous):
            portion.gap += number
            yield portion
        number += gaps.number


def _together(gpu: GpuWork, dependencies: dict[tuple[int, int | None], Dependencies]) -> Dependencies | None:
    """Return what is known of the operations of a GPU, in the order of `GpuWork.together`.

    None if nothing is.
    """
    if not any((gpu.device, stream) in dependencies for stream in gpu.parts):
        return None
    known = [
        dependencies.get((gpu.device, stream)) or Dependencies.nothing(len(track))
        for stream, track in gpu.streams.items()
    ]
    return Dependencies(
        np.concatenate([part.end for part in known]), np.concatenate([part.kind for part in known])
    )


@dataclass
class _ProcessGaps:
    """The gaps of one process, collected GPU by GPU.

    Then classified in the order of the calls that ended them.
    """

    longer_than: int
    number: int = 0
    places: list[ObservedPlace] = field(default_factory=list)
    # heads and tails: place, start, end, cause, number, the call of the operation behind a head (-1: not known)
    edges: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    parts: list[
        tuple[
            npt.NDArray[np.int32], Int64Array, Int64Array, Int64Array, Codes, Int64Array | None, Codes | None
        ]
    ] = field(default_factory=list)

    def add(
        self,
        place: Place,
        track: WorkTrack,
        dependencies: Dependencies | None,
        ended: tuple[Int64Array, Codes] | None,
        begin: int,
        finish: int,
    ) -> None:
        """Find the gaps in one track, whose operations may be in any order."""
        order = order_of(track.start)
        starts, ends = (track.start, track.end) if order is None else (track.start[order], track.end[order])
        # In order of start, a gap is where an operation starts after all earlier ones ended: of [0, 5), [1, 9), [12, 13) it is [9, 12).
        reach = np.maximum.accumulate(ends)
        after = np.flatnonzero(starts[1:] - reach[:-1] > self.longer_than) + 1
        first, last = reach[after - 1], starts[after]
        which = after if order is None else order[after]
        here, began, ended_at = len(self.places), int(starts[0]), int(reach[-1])
        longest = int((np.append(first, ended_at) - np.insert(last, 0, began)).max())
        self.places.append(
            ObservedPlace(
                *place,
                begin=min(begin, began),
                end=max(finish, ended_at),
                operations=len(track),
                stretches=len(after) + 1,
                longest=longest,
            )
        )
        if dependencies is not None:
            dependencies = Dependencies(dependencies.end[which], dependencies.kind[which])
        if ended is not None:
            dependencies = guessed(dependencies or Dependencies.nothing(len(after)), first, last, ended=ended)
        known = (None, None) if dependencies is None else (dependencies.end, dependencies.kind)
        self.parts.append(
            (np.full(len(after), here, np.int32), first, last, track.api[which], track.kind[which], *known)
        )
        call = (
            int(track.api[0 if order is None else order[0]]) if place[2] is None else -1
        )  # a stream may wait for another one
        for start, end, cause, api in ((begin, began, HEAD, call), (ended_at, finish, TAIL, -1)):
            if end - start > self.longer_than:
                self.edges.append((here, start, end, cause, self.number, api))
                self.number += 1

    def portions(
        self, calls: ApiCalls, synchronous: dict[int, tuple[Int64Array, Int64Array]]
    ) -> Iterator[IdleSpans]:
        """Yield the pieces of all gaps."""
        yield self._edges(calls)
        place, start, end, api, kind = (
            np.concatenate([part[column] for part in self.parts]) for column in range(5)
        )
        some_held = any(part[5] is not None for part in self.parts)
        held_end = held_kind = None
        if some_held:
            known = [
                Dependencies.nothing(len(part[1]))
                if part[5] is None or part[6] is None
                else Dependencies(part[5], part[6])
                for part in self.parts
            ]
            held_end, held_kind = (
                np.concatenate([part_known.end for part_known in known]),
                np.concatenate([part_known.kind for part_known in known]),
            )
        self.parts.clear()
        # Calls with neighbouring ids lie in one row group, so gaps are looked at in the order of the calls that ended them.
        order = np.argsort(api, kind="stable")
        for begin in range(0, len(order), _AT_ONCE):
            chunk = order[begin : begin + _AT_ONCE]
            called = calls.find(api[chunk])
            gap = Gaps(start[chunk], end[chunk], called, kind=kind[chunk])
            if held_end is not None and held_kind is not None:
                gap.hold(held_end[chunk], held_kind[chunk])
            gap.part(synchronous)
            which, pieces_start, pieces_end, cause = gap.result()
            whose = chunk[which]
            yield IdleSpans(
                self.places,
                place[whose],
                start=pieces_start,
                end=pieces_end,
                cause=cause,
                api=np.where(called.known, api[chunk], -1)[which],
                thread=called.thread[which],
                waits=(called.known & (called.end <= start[chunk]))[which],
                gap=whose + self.number,
            )
        self.number += len(order)

    def _edges(self, calls: ApiCalls) -> IdleSpans:
        rows = []
        for place_of, first, last, kind_of, number_of, api in self.edges:
            called = calls.find(np.array([api], np.int64))
            cut = last
            if called.known[0] and last - int(called.end[0]) > STARTS:
                cut = max(first, int(called.start[0]))
                rows.append((place_of, cut, last, EARLIER, number_of))
            if cut > first:
                rows.append((place_of, first, cut, kind_of, number_of))
        place, start, end, cause, number = np.array(rows, np.int64).reshape(-1, 5).T.copy()
        none = np.full(len(place), -1, np.int64)
        return IdleSpans(
            self.places,
            place.astype(np.int32),
            start=start,
            end=end,
            cause=cause.astype(np.uint8),
            api=none,
            thread=none,
            waits=none == 0,
            gap=number,
        )


_SCHEMA = pa.schema(
    [
        ("process", pa.int64()),
        ("device", pa.int32()),
        ("stream", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("cause", pa.dictionary(pa.int32(), pa.string())),
        ("api", pa.int64()),
        ("thread", pa.int64()),
        ("waits", pa.bool_()),
        ("gap", pa.int64()),
    ]
)


def _rows(part: IdleSpans) -> pa.Table:
    process, device, stream = (
        pa.array([place[column] for place in part.places], _SCHEMA.field(column).type) for column in range(3)
    )
    place = pa.array(part.place)
    cause = pa.DictionaryArray.from_arrays(pa.array(part.cause.astype(np.int32)), pa.array(CAUSES))
    api, thread = (pa.array(values, mask=values < 0) for values in (part.api, part.thread))
    where = [column.take(place) for column in (process, device, stream)]
    times = [pa.array(part.start), pa.array(part.end)]
    return pa.Table.from_arrays(
        [*where, *times, cause, api, thread, pa.array(part.waits), pa.array(part.gap)], schema=_SCHEMA
    )
