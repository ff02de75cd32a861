"""Adds edges for waits of the host.

From the operations that a call waited for to its end, and the time of the call itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.analysis.critical_path.dag import UNKNOWN
from warplens.analysis.critical_path.host import Host
from warplens.analysis.critical_path.parts import CALL, QUEUE, SYNC, GraphBuilder
from warplens.analysis.critical_path.recorded import (
    RecordedCalls,
    RecordedWork,
    Window,
    positions,
    read_table,
)
from warplens.analysis.critical_path.streams import Items, SyncWaits, latest_record
from warplens.analysis.gpu.launch_queue import LIMIT
from warplens.analysis.gpu.waiting_calls import synchronizes, waits
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

_QUEUED = LIMIT  # launches in a stream's queue before a call has to wait


def add(
    report: Report,
    window: Window | None,
    calls: RecordedCalls,
    work: RecordedWork,
    listed: SyncWaits,
    items: Items,
    host: Host,
    builder: GraphBuilder,
    things: int,
) -> None:
    """Add edges from awaited operations to the ends of calls; `weights` computes their weights.

    `things`: number of the first call.
    """
    listed_call = np.zeros(len(calls), bool)
    listed_call[listed.call[listed.call >= 0]] = True
    by_name = np.array([synchronizes(text) for text in calls.names], bool)[calls.columns["name"]]
    # A call without a recorded target waited for all earlier work that was done when the call returned.
    parts = (
        _of_rows(report, window, calls, listed=listed, items=items),
        _of_streams(calls, items, np.flatnonzero(by_name & ~listed_call), number=NOTHING),
    )
    call, before = (
        np.concatenate(columns) for columns in zip(*parts, _of_copies(calls, work, items), strict=True)
    )
    builder.add_edges(before, host.end[call], 0, kind=SYNC, thing=things + call)
    _full_queues(calls, work, items, host=host, builder=builder, things=things)


def weights(edges: dict[str, Int64Array], time: Int64Array, calls: RecordedCalls, things: int) -> Int64Array:
    """Return the weights of all edges, now that the times of all points are known.

    What calls take to return once the GPU is done is the median of those in their process that had to wait. By itself a call that waits
    takes the least that one of its name took that had nothing to wait for; nothing if there is none. So do launches into a full queue.
    """
    weight = edges["weight"].copy()
    rows = np.flatnonzero(edges["kind"] == SYNC)
    call, seen = edges["thing"][rows] - things, time[edges["start"][rows]]
    begin, end = calls.columns["start"], calls.columns["end"]
    process, name = (
        calls.columns["process"],
        calls.columns["process"] * (len(calls.names) + 1) + calls.columns["name"],
    )
    alive = seen <= end[call]
    latest = np.full(len(calls), UNKNOWN)
    np.maximum.at(latest, call[alive], seen[alive])
    syncs, waited = latest != UNKNOWN, (latest != UNKNOWN) & (latest > begin)
    returning = _per_group(process, end - np.where(waited, latest, end), waited, figure=np.median)
    weight[rows] = np.clip(end[call] - seen, 0, returning[call])
    queued = np.zeros(len(calls), bool)
    queued[edges["thing"][edges["kind"] == QUEUE] - things] = True
    own = _per_group(name, end - begin, ~waited & ~queued, figure=np.min)
    calling = np.flatnonzero(edges["kind"] == CALL)
    of = edges["thing"][calling] - things
    weight[calling] = np.where((syncs | queued)[of], np.minimum(own[of], weight[calling]), weight[calling])
    return weight


def _full_queues(
    calls: RecordedCalls, work: RecordedWork, items: Items, host: Host, builder: GraphBuilder, things: int
) -> None:
    """Add edges for launches that waited in a full queue until an earlier one of the stream began."""
    launch = calls.find(work.columns["api"])
    behind = np.flatnonzero(launch[_QUEUED:] >= 0) + _QUEUED
    ahead = behind - _QUEUED
    # Launch i of a stream waits until launch i - _QUEUED has begun. Pairs that are not of one stream are left out.
    same = np.all(
        [work.columns[name][behind] == work.columns[name][ahead] for name in ("process", "device", "stream")],
        axis=0,
    )
    behind, ahead = behind[same], ahead[same]
    call, begun = launch[behind], work.columns["start"][ahead]
    waited = (
        (begun > calls.columns["start"][call]) & (begun <= calls.columns["end"][call])
        if len(calls)
        else np.zeros(0, bool)
    )
    call, ahead = call[waited], ahead[waited]
    late = calls.columns["end"][call] - work.columns["start"][ahead]
    builder.add_edges(items.operation[ahead], host.end[call], late, kind=QUEUE, thing=things + call)


def _per_group(
    group: Int64Array, value: Int64Array, usable: npt.NDArray[np.bool_], figure: Callable[[Int64Array], Any]
) -> Int64Array:
    """Return for each row a figure of the usable values of its group, 0 if there is none."""
    result = np.zeros(len(value), np.int64)
    rows = np.flatnonzero(usable)
    rows = rows[np.argsort(group[rows], kind="stable")]
    parts = np.split(rows, np.flatnonzero(np.diff(group[rows])) + 1) if len(rows) else []
    known = np.array([group[part[0]] for part in parts], np.int64)
    figures = np.array([int(figure(value[part])) for part in parts], np.int64)
    place = positions(known, group)
    result[place >= 0] = figures[place[place >= 0]]
    return result


def _of_rows(
    report: Report, window: Window | None, calls: RecordedCalls, listed: SyncWaits, items: Items
) -> tuple[Int64Array, Int64Array]:
    """For waits that the report lists: pairs of a call and a point that it waits for."""
    columns, kinds = listed.columns, np.array(listed.kind, object)
    rows = np.flatnonzero((kinds == "Event") & (listed.call >= 0))
    events, _ = read_table(
        report, "cuda_events", ["process", "start", "event", "event_sync", "api"], window=window
    )
    made = calls.find(events["api"])
    recorded = np.where(made >= 0, calls.columns["start"][made] if len(calls) else 0, events["start"])
    record = latest_record(events, recorded, listed, rows=rows)
    rows, record = rows[record >= 0], record[record >= 0]
    pairs = [(listed.call[rows], items.begin[items.record[record]])]
    context = np.flatnonzero((kinds == "Context") & (listed.call >= 0))
    pairs.append(_of_streams(calls, items, listed.call[context], number=NOTHING))
    stream = np.flatnonzero((kinds == "Stream") & (listed.call >= 0))
    numbers = np.unique(columns["stream"][stream]).tolist()
    pairs += [
        _of_streams(calls, items, listed.call[stream[columns["stream"][stream] == number]], number=number)
        for number in numbers
    ]
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _of_streams(
    calls: RecordedCalls, items: Items, call: Int64Array, number: int
) -> tuple[Int64Array, Int64Array]:
    """Pairs of calls and the last item before each in every stream of its process.

    Or in the streams of one number.
    """
    pairs = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for stream in range(len(items.streams)):
        if number not in (NOTHING, int(items.streams[stream, 1])):
            continue
        mine = call[calls.columns["process"][call] == items.streams[stream, 0]]
        last = items.last_before(
            np.full(len(mine), stream), calls.columns["start"][mine], calls.columns["end"][mine]
        )
        pairs.append((mine[last >= 0], items.end[last[last >= 0]]))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _of_copies(calls: RecordedCalls, work: RecordedWork, items: Items) -> tuple[Int64Array, Int64Array]:
    """Pairs of calls that copy or set memory and return when that is done, and the end of what they did."""
    launch = calls.find(work.columns["api"])
    here = launch >= 0
    by_name = np.array([waits(text) and not synchronizes(text) for text in calls.names], bool)
    chosen = np.zeros(len(work), bool)
    chosen[here] = by_name[calls.columns["name"][launch[here]]] | (work.columns["pageable"][here] == 1)
    chosen[here] &= work.columns["end"][here] <= calls.columns["end"][launch[here]]
    rows = np.flatnonzero(chosen)
    return launch[rows], items.ended[rows]
