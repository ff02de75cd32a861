"""The GPUs' side of a graph: operations in the order of their streams, and the events between those."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.analysis.critical_path.dag import UNKNOWN
from warplens.analysis.critical_path.host import Host
from warplens.analysis.critical_path.parts import EVENT, LAUNCH, ORDER, WORK, GraphBuilder
from warplens.analysis.critical_path.recorded import (
    OPERATIONS,
    RecordedCalls,
    RecordedWork,
    Window,
    grouped,
    read_table,
)
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array, distinct

if TYPE_CHECKING:
    from warplens.report.report import Report


@dataclass(frozen=True)
class Items:
    """The contents of streams, in order: operations, and points that record or await an event.

    `stream`: place in `streams`; `begin`, `end`: points; `launched`, `reached`: the latest begin of a call, and end of an operation, so far
    in its stream. `streams`: process, number and device of each stream. `record`: item of each row of `cuda_events`. `operation`, `ended`:
    points of each operation.
    """

    stream: Int64Array
    begin: Int64Array
    end: Int64Array
    launched: Int64Array
    reached: Int64Array
    streams: Int64Array
    record: Int64Array
    operation: Int64Array
    ended: Int64Array

    def last_before(self, stream: Int64Array, time: Int64Array, done: Int64Array) -> Int64Array:
        """Return the last item of each stream launched before a time and finished by `done`, or NOTHING."""
        # `launched` and `reached` both grow within a stream, so each condition holds for a prefix; the shorter prefix meets both.
        place = np.minimum(
            self._before(stream, self.launched, time), self._before(stream, self.reached, done + 1)
        )
        known = (
            (place >= 0) & (self.stream[np.maximum(place, 0)] == stream)
            if len(self.stream)
            else np.zeros(len(time), bool)
        )
        return np.asarray(np.where(known, place, NOTHING), np.int64)

    def _before(self, stream: Int64Array, growing: Int64Array, time: Int64Array) -> Int64Array:
        """Return the place before the first item of each stream with a number of at least `time`.

        The numbers grow in each stream.
        """
        times = distinct(np.concatenate((growing, time)))
        width = len(times) + 1
        # Stream and rank of time in one number: sorted by stream, then time, so one searchsorted serves all streams.
        keys = self.stream * width + np.searchsorted(times, growing)
        return np.asarray(np.searchsorted(keys, stream * width + np.searchsorted(times, time)) - 1, np.int64)


@dataclass(frozen=True)
class SyncWaits:
    """The waits of streams and hosts: rows of `syncs`, with `kind` as text.

    `begin`: of the call, or of the row without one.
    """

    columns: dict[str, Int64Array]
    kind: list[str]
    call: Int64Array
    begin: Int64Array

    @classmethod
    def read(cls, report: Report, window: Window | None, calls: RecordedCalls) -> SyncWaits:
        """Read the waits that began before the window's end."""
        columns, texts = read_table(
            report,
            "syncs",
            ["process", "start", "stream", "event", "event_sync", "api"],
            window=window,
            texts=["kind"],
        )
        call = calls.find(columns["api"])
        begin = np.where(call >= 0, calls.columns["start"][call] if len(calls) else 0, columns["start"])
        return cls(columns, texts.column("kind").cast("string").to_pylist(), call, begin)


def items(
    report: Report,
    window: Window | None,
    calls: RecordedCalls,
    work: RecordedWork,
    waits: SyncWaits,
    joined: Int64Array,
    host: Host,
    builder: GraphBuilder,
    things: int,
) -> Items:
    """Add operations, launches, the order of streams, and waits of streams for events.

    `joined`: operations whose length depends on others. `things`: number of the first operation.
    """
    begin, end = builder.add_points(work.columns["start"]), builder.add_points(work.columns["end"])
    number = things + np.arange(len(work))
    length = work.columns["end"] - work.columns["start"]
    # A kernel of a collective ends when the last rank has come, so its end depends on an edge from
    # all ranks and not on its own length.
    length[joined] = 0
    builder.add_edges(begin, end, length, kind=WORK, thing=number)
    launch = calls.find(work.columns["api"])
    events, _ = read_table(
        report,
        "cuda_events",
        ["process", "device", "stream", "start", "event", "event_sync", "api"],
        window=window,
    )
    # Marks in the order of streams: first every cudaEventRecord (`recorded`), then every
    # cudaStreamWaitEvent (`waiting`). An edge later connects the mark of a record with the mark of
    # each wait for it.
    waiting = np.flatnonzero(np.array([kind == "Stream wait event" for kind in waits.kind], bool))
    recorded_call = calls.find(events["api"])
    recorded = np.where(
        recorded_call >= 0, calls.columns["start"][recorded_call] if len(calls) else 0, events["start"]
    )
    marked_call, marked = (
        np.concatenate((recorded_call, waits.call[waiting])),
        np.concatenate((recorded, waits.begin[waiting])),
    )
    # A mark has no duration: the stream comes to it, but not before the call. Where the call is not known, it is taken as seen.
    marks = builder.add_points(np.where(marked_call >= 0, UNKNOWN, marked))
    builder.add_edges(
        host.begin[marked_call[marked_call >= 0]], marks[marked_call >= 0], 0, kind=EVENT, thing=NOTHING
    )
    # Streams by process and number; their operations in order of start, and the marks where their calls came.
    keys = [
        np.concatenate((work.columns["process"], events["process"], waits.columns["process"][waiting])),
        np.concatenate((work.columns["stream"], events["stream"], waits.columns["stream"][waiting])),
        np.concatenate((work.columns["device"], np.full(len(marks), NOTHING))),
    ]
    _device_of_streams(keys, len(work))
    groups, stream = grouped(keys)
    streams = np.column_stack(groups)
    # What was launched by a call that is not known came with what is before it in its stream; the first ones before the recording.
    launched = np.where(launch >= 0, calls.columns["start"][launch] if len(calls) else 0, UNKNOWN)
    launched = _latest_so_far(stream[: len(work)], launched)
    when = np.concatenate((launched, marked))
    # At one time, operations keep their order and come before marks.
    tie = np.concatenate((np.arange(len(work)), np.full(len(marks), len(work))))
    order = np.lexsort((tie, when, stream))
    item_begin, item_end = np.concatenate((begin, marks))[order], np.concatenate((end, marks))[order]
    row = np.concatenate((np.arange(len(work)), np.full(len(marks), NOTHING)))[order]
    # The inverse permutation: place[i] is where row i of the concatenation stands among the items.
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    record = place[len(work) : len(work) + len(recorded)]
    reached = np.concatenate((work.columns["end"], np.full(len(marks), UNKNOWN)))
    reached = _latest_so_far(stream[order], reached[order])
    added = Items(
        stream[order],
        item_begin,
        item_end,
        launched=when[order],
        reached=reached,
        streams=streams,
        record=record,
        operation=begin,
        ended=end,
    )
    _launches(calls, work, launch, host=host, items=added, row=row, builder=builder, things=things)
    _in_order(added, np.where(row == NOTHING, NOTHING, things + row), builder)
    awaited = latest_record(events, recorded, waits, rows=waiting)
    known = (
        (awaited >= 0) & (recorded[awaited] < waits.begin[waiting])
        if len(recorded)
        else np.zeros(len(awaited), bool)
    )
    builder.add_edges(marks[awaited[known]], marks[len(recorded) :][known], 0, kind=EVENT, thing=NOTHING)
    return added


def latest_record(
    events: dict[str, Int64Array], recorded: Int64Array, waits: SyncWaits, rows: Int64Array
) -> Int64Array:
    """Return the row of `cuda_events` that each wait is for, or NOTHING.

    The one it names, else the last one before it.
    """
    exact = {
        (process, event, sync): row
        for row, (process, event, sync) in enumerate(
            zip(*(events[name].tolist() for name in ("process", "event", "event_sync")), strict=True)
        )
        if sync >= 0
    }
    # Of one event in order of time, so that the last one before a wait is found by search.
    of: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in np.argsort(recorded, kind="stable").tolist():
        of.setdefault((int(events["process"][row]), int(events["event"][row])), []).append(
            (int(recorded[row]), row)
        )
    record_of = np.full(len(rows), NOTHING)
    for number, row in enumerate(rows.tolist()):
        process, event, sync = (int(waits.columns[name][row]) for name in ("process", "event", "event_sync"))
        if (process, event, sync) in exact:
            record_of[number] = exact[process, event, sync]
            continue
        before = of.get((process, event), [])
        place = bisect_left(before, (int(waits.begin[row]), -1)) - 1
        record_of[number] = before[place][1] if place >= 0 else NOTHING
    return record_of


def _launches(
    calls: RecordedCalls,
    work: RecordedWork,
    launch: Int64Array,
    host: Host,
    items: Items,
    row: Int64Array,
    builder: GraphBuilder,
    things: int,
) -> None:
    """Add how long after its call an operation begins.

    `row`: operation of each item, NOTHING for marks.
    """
    free = np.full(len(work), 1 << 62)  # when the stream was free for it; never known behind a mark
    some = np.flatnonzero(row != NOTHING)
    before = some - 1
    first = (some == 0) | (items.stream[some] != items.stream[np.maximum(before, 0)])
    behind = ~first & (row[np.maximum(before, 0)] != NOTHING)
    # The first operation of a stream finds it free; any other one when the operation before it ended.
    free[row[some[first]]] = UNKNOWN
    free[row[some[behind]]] = work.columns["end"][row[before[behind]]]
    rows = np.flatnonzero(launch >= 0)
    called = calls.columns["start"][launch[rows]] if len(calls) else np.empty(0, np.int64)
    took = work.columns["start"][rows] - called
    # What those took that did not have to wait for their stream.
    group = work.columns["process"][rows] * len(OPERATIONS) + work.columns["table"][rows]
    latency = typical(group, took, (free[rows] <= called) & (took >= 0))
    builder.add_edges(
        host.begin[launch[rows]],
        items.operation[rows],
        np.minimum(took, latency),
        kind=LAUNCH,
        thing=things + rows,
    )


def typical(group: Int64Array, value: Int64Array, usable: npt.NDArray[np.bool_]) -> Int64Array:
    """Return for each row the median of the usable values of its group, 0 where there is none."""
    result = np.zeros(len(value), np.int64)
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []:
        good = value[rows[usable[rows]]]
        result[rows] = int(np.median(good)) if len(good) else 0
    return result


def _in_order(items: Items, thing: Int64Array, builder: GraphBuilder) -> None:
    """An operation in a stream begins after the previous one has ended.

    Where it did not, it did not begin before that one.
    """
    next_one = np.flatnonzero(items.stream[1:] == items.stream[:-1]) + 1
    time = builder.time()
    before, after = items.end[next_one - 1], items.begin[next_one]
    overlap = (time[before] > time[after]) & (time[after] != UNKNOWN)
    # Two operations of one stream overlap: then only their begins are in order.
    before = np.where(overlap, items.begin[next_one - 1], before)
    builder.add_edges(before, after, 0, kind=ORDER, thing=thing[next_one])


def _latest_so_far(group: Int64Array, value: Int64Array) -> Int64Array:
    """Return the greatest value so far of each group; rows of a group are in its order."""
    order = np.argsort(group, kind="stable")
    values = distinct(value)
    width = len(values) + 1
    # The running maximum over all groups at once: a group's numbers are all greater than those of the groups before it.
    ranks = (
        np.maximum.accumulate(group[order] * width + np.searchsorted(values, value[order]))
        - group[order] * width
    )
    latest = np.empty(len(value), np.int64)
    latest[order] = values[ranks] if len(values) else 0
    return latest


def _device_of_streams(keys: list[Int64Array], operations: int) -> None:
    """Give marks without a device that of their stream. Marks come behind the operations."""
    if operations == len(keys[0]):
        return
    groups, _ = grouped([values[:operations] for values in keys])
    known = {
        (process, stream): device
        for process, stream, device in zip(*(values.tolist() for values in groups), strict=True)
    }
    marks = zip(*(values[operations:].tolist() for values in keys[:2]), strict=True)
    keys[2][operations:] = [known.get(mark, NOTHING) for mark in marks]
