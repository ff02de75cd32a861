"""The host's side of a dependency graph: the calls of each thread that uses CUDA, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.critical_path.parts import CALL, CPU, GraphBuilder
from warplens.analysis.critical_path.recorded import RecordedCalls, Window
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report


@dataclass(frozen=True)
class Host:
    """Chains of points, one for each thread: its begin, begin and end of its calls, its end.

    `begin`, `end`: points of each call. `first`, `last`: points of each thread in `threads`; `process` is theirs.
    """

    threads: Int64Array
    process: Int64Array
    first: Int64Array
    last: Int64Array
    begin: Int64Array
    end: Int64Array


def chains(
    report: Report, window: Window | None, calls: RecordedCalls, builder: GraphBuilder, idle: Int64Array
) -> Host:
    """Add the chains of all threads that call CUDA.

    Things: threads come first, by their place, then the calls.

    `idle[i]`: how much of the time before call i its thread did nothing but wait for another one, NOTHING: it had no work before; the last
    ones are those before the ends of threads.
    """
    thread, start, end = (calls.columns[name] for name in ("thread", "start", "end"))
    threads, begins, counts = np.unique(thread, return_index=True, return_counts=True)
    lasts = begins + counts - 1
    first_time, last_time = _reach(
        report,
        window,
        threads,
        first=start[begins] if len(calls) else start,
        last=end[lasts] if len(calls) else end,
    )
    first, last = builder.add_points(first_time), builder.add_points(last_time)
    begin, done = builder.add_points(start), builder.add_points(end)
    place = np.searchsorted(threads, thread)
    opens = np.zeros(len(calls), bool)
    opens[begins] = True
    # Calls come by thread and start, so the point before a call is the end of the row above it, or the start of its thread.
    before = np.where(opens, first[place], np.roll(done, 1))
    before_time = np.where(opens, first_time[place], np.roll(end, 1))
    works = np.flatnonzero(idle[: len(calls)] != NOTHING)
    weight = np.maximum(start - before_time - idle[: len(calls)], 0)
    builder.add_edges(before[works], begin[works], weight[works], kind=CPU, thing=place[works])
    builder.add_edges(begin, done, end - start, kind=CALL, thing=len(threads) + np.arange(len(calls)))
    if len(threads):
        builder.add_edges(
            done[lasts],
            last,
            np.maximum(last_time - end[lasts] - idle[len(calls) :], 0),
            kind=CPU,
            thing=np.arange(len(threads)),
        )
    return Host(threads, calls.columns["process"][begins], first=first, last=last, begin=begin, end=done)


def _reach(
    report: Report, window: Window | None, threads: Int64Array, first: Int64Array, last: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the span of each thread: from its first call or push/pop range to its last, in the window."""
    if not len(threads) or not report.tables["nvtx_ranges"]:
        return first, last
    begin, end = window or (-(1 << 62), 1 << 62)
    rows = report.sql(
        f"""SELECT thread, greatest(min("start"), {begin}) AS first, least(max("end"), {end}) AS last FROM nvtx_ranges
            WHERE style = 'PushPop' AND thread IN (SELECT unnest($threads)) AND "start" < {end} AND "end" > {begin} GROUP BY thread""",
        {"threads": threads.tolist()},
    )
    place = np.searchsorted(threads, rows.column("thread").to_numpy())
    first, last = first.copy(), last.copy()
    first[place] = np.minimum(first[place], rows.column("first").to_numpy())
    last[place] = np.maximum(last[place], rows.column("last").to_numpy())
    return first, last
