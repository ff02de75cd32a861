"""MPI Event Summary.

## What it shows
Number and duration of the calls of each MPI function.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the calls. StdDev is the sample standard
  deviation (n-1), 0 for a single value.
- Instances: number of calls.
- Host, Rank, PID: the process, with `:by=process` and `:by=thread`. Each is shown only if rows
  differ in it.
- TID, Thread: with `:by=thread`.
- Source: `p2p`, `collective`, `wait` (for an operation that began before) or `other`.
- Name: the function.

## How it is computed
Each recorded call counts with its full duration. All ranks are combined, unless `:by` divides them.
With --filter-time, calls that overlap the time count. With --filter-nvtx, calls count whose thread
was in such a range. The largest total comes first.

## Traps
- A collective lasts until its last rank arrives: its time is mostly waiting. The rank with the
  shortest calls is the one that the others wait for; `:by=process` shows it.
- A call that does not block (`MPI_Isend`) spends its time in a later `wait`, or nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.base import one_of
from warplens.stats.calls import calls_sum

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_PER = {"function": (), "process": ("process",), "thread": ("process", "thread")}


def table(report: Report, selection: Selection, *, by: str = "function") -> pa.Table:
    """Return the summary; raises MissingData if no call of MPI was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together), `process` or `thread`: rows for each, beside the function.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Source": "kind", "Name": "name"}
    return calls_sum(
        report, selection, "mpi_events", keys=keys, per=per, missing="MPI trace data", count="Instances"
    )
