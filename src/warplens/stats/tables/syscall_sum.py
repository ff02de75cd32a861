"""System Call Summary.

## What it shows
Number and duration of the program's system calls.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the calls. StdDev is the sample standard
  deviation (n-1), 0 for a single value.
- Num Calls: number of calls.
- Host, Rank, PID: the process, with `:by=process` and `:by=thread`. Each is shown only if rows
  differ in it.
- TID, Thread: with `:by=thread`.
- Name: the system call.

## How it is computed
Each recorded row of `syscalls` counts with its full duration. All threads and processes are
combined, unless `:by` divides them. With --filter-time, calls that overlap the time count. With
--filter-nvtx, calls count whose thread was in such a range. The largest total comes first.

## Traps
- Most of this time is waiting: a thread in `futex` or `epoll_wait` all day is idle, not slow.
- Threads and processes run at the same time: a total may exceed the wall time of the run.
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
    """Return the summary; raises MissingData if nothing of it was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together), `process` or `thread`: rows for each, beside the name.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Name": "name"}
    return calls_sum(
        report, selection, "syscalls", keys=keys, per=per, missing="system call trace data", count="Num Calls"
    )
