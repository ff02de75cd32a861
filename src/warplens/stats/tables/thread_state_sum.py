"""Thread State Summary.

## What it shows
How long each thread ran, was ready but had no CPU, and was blocked, and in which call.

## Columns
- Running (%): share of the time in which the thread's state is known. Running, Runnable, Blocked
  (ns): time in that state.
- Runs: number of times that it got a CPU. CPUs: number of different CPUs that it ran on.
- Max Runnable, Max Blocked (ns): longest single one.
- Blocked Most In: the OS call, or `GIL`, with most of its Blocked time, and the share.
- Host, Rank, PID: each is shown only if rows differ in it. TID, Thread.
- With `:by=reason`, one row for each thread, state and reason: Time (%) of the thread, Total Time,
  Count, Avg, Med, Min, Max, StdDev (ns), State, Reason.

## How it is computed
From the table `thread_states`. With a filter, only the part of each state in the selected time
counts, or the part inside the thread's own ranges of that name. The thread that ran longest comes
first.

## Traps
- If the kernel does not allow recording of context switches, states come from differences of its
  counters between two readings. Then sums are right, but single rows and maxima are not, and Runs
  is too low. A note says so.
- Runnable time is not caused by the thread's own code: there are more threads than CPUs, or other
  programs.
- With `:by=reason`, threads that only wait at one place (98 % of their Python samples) come last.
- A reason is known if the call was recorded (--trace=osrt,gil). `[unknown]` covers calls below the
  threshold, page faults, and calls that no source records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.samples import IDLE_THREADS
from warplens.analysis.ranges.phases import pieces, said
from warplens.errors import MissingData
from warplens.model.words import counted
from warplens.stats.base import noted, one_of
from warplens.stats.calls import located
from warplens.stats.sums import block, grouped

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_UNKNOWN = "[unknown]"
# reasons: blocked time by thread and reason. most: the reason with the most time of each thread. sums: the time in each state.
_SUMS = """
WITH rows AS (SELECT * FROM {relation}),
reasons AS (
  SELECT thread, coalesce(reason, '{unknown}') AS reason, sum(inside) AS ns, sum(sum(inside)) OVER (PARTITION BY thread) AS blocked
  FROM rows WHERE state = 'blocked' GROUP BY thread, reason),
most AS (SELECT * FROM reasons WHERE ns > 0 QUALIFY row_number() OVER (PARTITION BY thread ORDER BY ns DESC, reason) = 1),
sums AS (
  SELECT process, thread, count(*) FILTER (WHERE state = 'running') AS runs, count(DISTINCT cpu) FILTER (WHERE state = 'running') AS cpus,
    sum(inside)::BIGINT AS known, bool_and(exact) AS exact, {states}
    max(inside) FILTER (WHERE state = 'runnable') AS longest_runnable, max(inside) FILTER (WHERE state = 'blocked') AS longest_blocked
  FROM rows GROUP BY process, thread)
SELECT sums.*, coalesce(100.0 * running / nullif(known, 0), 0.0) AS share,
  most.reason || printf(' (%.0f %%)', 100.0 * most.ns / most.blocked) AS most
FROM sums LEFT JOIN most USING (thread) ORDER BY running DESC, blocked, thread
"""
_STATES = ("running", "runnable", "blocked")


def table(report: Report, selection: Selection, *, by: str = "thread") -> pa.Table:
    """Return the summary; raises MissingData if no state of a thread was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `thread`, or `reason`: one row for each state and reason of a thread.
    """
    one_of("by", by, ("thread", "reason"))
    relation, missing = pieces(report, selection, "thread_states"), "thread state data"
    states = "".join(
        f"coalesce(sum(inside) FILTER (WHERE state = '{state}'), 0)::BIGINT AS {state}, " for state in _STATES
    )
    rows = report.sql(_SUMS.format(relation=relation, unknown=_UNKNOWN, states=states))
    if not rows.num_rows:
        raise MissingData(f"does not contain {missing}{selection.place(report)}.")
    guessed = pc.sum(pc.invert(rows.column("exact"))).as_py()
    looked = (
        f"States of {counted(guessed, 'thread')} come from counters of the scheduler, read from time to time."
        if guessed
        else ""
    )
    notes = looked, said(report, selection)
    if by == "reason":
        unknown = f"coalesce(reason, CASE WHEN state = 'blocked' THEN '{_UNKNOWN}' ELSE '' END)"
        keys = {"State": "state", "Reason": unknown}
        per = ("process", "thread")
        state_rows = grouped(
            report,
            selection,
            relation,
            keys=keys,
            missing=missing,
            value="inside",
            per=per,
            where="true",
            more={"idle": f"bool_or(thread IN {IDLE_THREADS})"},
        )
        # Sort by it alone: the rows of a thread stay together.
        state_rows = state_rows.take(pc.array_sort_indices(state_rows.column("idle").cast("uint8")))
        figures = {
            "Time (%)": state_rows.column("share"),
            **block(state_rows, "Total Time (ns)", "ns", count="Count"),
        }
        return noted(
            pa.table(
                {**figures, **located(report, state_rows), **{name: state_rows.column(name) for name in keys}}
            ),
            *notes,
        )
    columns = {
        "Running (%)": rows.column("share"),
        **{f"{state.capitalize()} (ns)": rows.column(state) for state in _STATES},
        "Runs": rows.column("runs"),
        "CPUs": rows.column("cpus"),
        "Max Runnable (ns)": rows.column("longest_runnable"),
        "Max Blocked (ns)": rows.column("longest_blocked"),
        "Blocked Most In": rows.column("most"),
        **located(report, rows),
    }
    return noted(pa.table(columns), *notes)
