"""Detects stretches in which a thread waits for another.

The backward pass on a thread of the framework's engine.

PyTorch's autograd engine runs the backward pass on separate threads, while the thread that called `backward()` waits. Nothing in a
report says so but the operations themselves: those of the backward pass lie in a stretch in which the other thread neither calls CUDA
nor runs an operation. A report without operations shows it by the calls: the threads take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.critical_path.host import Host
from warplens.analysis.critical_path.parts import CPU, GraphBuilder
from warplens.analysis.critical_path.recorded import RecordedCalls, Window
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report


_IN_TURN = 0.95  # of a helper's calls
_CALLS = 4  # in a burst, on average at least
_TURNS = 10  # fewer may be chance


@dataclass(frozen=True)
class Handover:
    """A stretch in which thread `helper` worked while `waiter` waited.

    From `begin` to `end`, between the waiter's calls `before` and `before + 1` (rows of calls).

    `first`, `last`: rows of the helper's calls in it.
    """

    waiter: int
    helper: int
    before: int
    begin: int
    end: int
    first: int
    last: int


def find(report: Report, window: Window | None, calls: RecordedCalls) -> list[Handover]:
    """Find the stretches of the backward pass in which another thread of the process waited."""
    if not len(calls):
        return []
    if not report.tables["ops"]:
        return _by_calls(calls)
    low, high = window or (-(1 << 62), 1 << 62)
    rows = report.sql(
        f"""SELECT process, thread, "start", "end", coalesce(backward, false) AS backward FROM ops
            WHERE "start" < {high} AND "end" > {low} AND "start" >= {low} AND "end" <= {high} ORDER BY process, thread, "start" """
    )
    columns = {name: np.asarray(rows.column(name).to_numpy(), np.int64) for name in rows.column_names}
    handovers: list[Handover] = []
    thread = calls.columns["thread"]
    for process in np.unique(columns["process"][columns["backward"] == 1]).tolist():
        ours = columns["process"] == process
        backward = ours & (columns["backward"] == 1)
        helpers = np.unique(columns["thread"][backward])
        candidates = np.setdiff1d(np.unique(thread[calls.columns["process"] == process]), helpers)
        if not len(candidates):
            continue
        waiter = max(candidates.tolist(), key=lambda key: int((thread == key).sum()))
        own = ours & (columns["thread"] == waiter)
        for helper in helpers.tolist():
            mine = backward & (columns["thread"] == helper)
            handovers += _of_pair(
                calls,
                waiter,
                helper,
                start=columns["start"][mine],
                end=columns["end"][mine],
                own_start=columns["start"][own],
                own_end=columns["end"][own],
            )
    return handovers


def _by_calls(calls: RecordedCalls) -> list[Handover]:
    """Find threads that take turns by their calls alone, where no operations are recorded.

    A helper makes nearly all its calls in bursts, each between two calls of the thread that called first in the process. Two threads
    that know nothing of each other do not keep to that for long.
    """
    handovers: list[Handover] = []
    process, thread = calls.columns["process"], calls.columns["thread"]
    start, end = calls.columns["start"], calls.columns["end"]
    nothing = np.empty(0, np.int64)
    for key in np.unique(process).tolist():
        ours = np.flatnonzero(process == key)
        waiter = int(thread[ours[np.argmin(start[ours])]])
        theirs = np.flatnonzero(thread == waiter)
        for helper in np.setdiff1d(np.unique(thread[ours]), [waiter]).tolist():
            mine = np.flatnonzero(thread == helper)
            # gap n lies behind call n - 1 of the waiter and before its call n; gap 0 lies before
            # its first call and has no call that could wait. A call lies whole in its gap if no
            # call of the waiter begins during it (the second search gives the same gap) and call n
            # - 1 had returned before it began.
            gap = np.searchsorted(start[theirs], start[mine], side="right")
            whole = (gap > 0) & (gap == np.searchsorted(start[theirs], end[mine], side="left"))
            whole &= end[theirs[np.maximum(gap - 1, 0)]] <= start[mine]
            bursts = len(np.unique(gap[whole]))
            if whole.sum() < _IN_TURN * len(mine) or bursts < _TURNS or len(mine) < _CALLS * bursts:
                continue
            handovers += _of_pair(
                calls,
                waiter,
                helper,
                start=start[mine],
                end=end[mine],
                own_start=nothing,
                own_end=nothing,
            )
    return handovers


def _of_pair(
    calls: RecordedCalls,
    waiter: int,
    helper: int,
    start: Int64Array,
    end: Int64Array,
    own_start: Int64Array,
    own_end: Int64Array,
) -> list[Handover]:
    theirs = np.flatnonzero(calls.columns["thread"] == waiter)
    mine = np.flatnonzero(calls.columns["thread"] == helper)
    # In which gap between two calls of the waiter each operation lies, and whether it lies there whole.
    gap = np.searchsorted(calls.columns["start"][theirs], start, side="right")
    # An operation lies whole in a gap when no call of the waiter begins between its start and its end.
    whole = (gap == np.searchsorted(calls.columns["start"][theirs], end, side="left")) & (gap > 0)
    whole &= calls.columns["end"][theirs[np.maximum(gap - 1, 0)]] <= start
    handovers = []
    for place in np.unique(gap[whole]).tolist():
        rows = whole & (gap == place)
        begin, finish = int(start[rows].min()), int(end[rows].max())
        if np.any((own_start < finish) & (own_end > begin)):
            continue
        inside = mine[(calls.columns["start"][mine] >= begin) & (calls.columns["end"][mine] <= finish)]
        if len(inside):
            handovers.append(
                Handover(
                    waiter,
                    helper,
                    int(theirs[place - 1]),
                    begin=begin,
                    end=finish,
                    first=int(inside[0]),
                    last=int(inside[-1]),
                )
            )
    return handovers


def idle(handovers: list[Handover], calls: RecordedCalls) -> Int64Array:
    """Return how long each call's thread waited for another one before it.

    Then the same before the ends of threads, in order of thread.

    NOTHING for the first call of a thread that was given work: what it did before does not count.
    """
    thread = calls.columns["thread"]
    threads = np.unique(thread)
    waited = np.zeros(len(calls) + len(threads), np.int64)
    for handover in handovers:
        last = handover.before + 1 == len(calls) or thread[handover.before + 1] != thread[handover.before]
        waited[
            len(calls) + int(np.searchsorted(threads, handover.waiter)) if last else handover.before + 1
        ] += handover.end - handover.begin
        waited[handover.first] = NOTHING
    return waited


def add(handovers: list[Handover], calls: RecordedCalls, host: Host, builder: GraphBuilder) -> None:
    """Add the edges from the waiting thread to the one that works, and back."""
    if not handovers:
        return
    begin = builder.add_points(np.array([one.begin for one in handovers], np.int64))
    end = builder.add_points(np.array([one.end for one in handovers], np.int64))
    start, done, thread = (calls.columns[name] for name in ("start", "end", "thread"))
    before, first, last = (
        np.array([getattr(one, name) for one in handovers], np.int64) for name in ("before", "first", "last")
    )
    waiter, helper = (
        np.searchsorted(host.threads, [getattr(one, name) for one in handovers])
        for name in ("waiter", "helper")
    )
    behind = np.minimum(before + 1, len(calls) - 1)
    ends = (before + 1 == len(calls)) | (thread[behind] != thread[before])
    time = builder.time()
    after = np.where(ends, host.last[waiter], host.begin[behind])
    builder.add_edges(host.end[before], begin, time[begin] - done[before], kind=CPU, thing=waiter)
    builder.add_edges(begin, host.begin[first], start[first] - time[begin], kind=CPU, thing=helper)
    builder.add_edges(host.end[last], end, time[end] - done[last], kind=CPU, thing=helper)
    builder.add_edges(end, after, time[after] - time[end], kind=CPU, thing=waiter)
