"""System Call Summary.

## What it shows
How often the program called the kernel, and how long the calls took.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): StdDev is that of a sample (n-1), 0 for one.
- Num Calls: how many.
- Host, Rank, PID: of the process, with `:by=process` and `:by=thread`; each only where the rows differ in it.
- TID, Thread: with `:by=thread`.
- Name: the system call.

## How it is computed
Every recorded row of `syscalls` counts with its whole length, of all threads and processes together unless `:by` keeps them
apart. With --filter-time, those that overlap the time; with --filter-nvtx, those of threads that were in such a range themselves. The
greatest total comes first.

## Traps
- Most of this time is waiting: a thread in `futex` or `epoll_wait` all day is idle, not slow.
- Threads and processes run side by side: a total may exceed the wall time of the run.
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
    """Return the summary; MissingData where nothing of it was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides rows further, beside their name: `function` (nothing), `process` or `thread`.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Name": "name"}
    return calls_sum(
        report, selection, "syscalls", keys=keys, per=per, missing="system call trace data", count="Num Calls"
    )
