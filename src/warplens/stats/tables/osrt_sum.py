"""OS Runtime Summary.

## What it shows
How often the program called each function of the C library that reads, writes, waits, sleeps, locks or starts processes, and how long
the calls took.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the calls; StdDev is that of a sample (n-1), 0 for one call.
- Num Calls: how many calls.
- Host, Rank, PID: of the process, with `:by=process` and `:by=thread`; each only where the rows differ in it.
- TID, Thread: with `:by=thread`. Target: with `:by=target`: the file, peer or program that it was about.
  Object: with `:by=object`: address of the lock, condition or semaphore.
- Name: the function.

## How it is computed
Every recorded call counts with its whole length, of all threads and processes together unless `:by` keeps them apart. With --filter-time,
calls that overlap the time; with --filter-nvtx, those of threads that were in such a range themselves, in all ranges of that name or in
the one whose index is given; with --window, the piece of each that lies in the window. The greatest total comes first. Where Python
samples show threads that only wait at one place (98 % of their samples), the time of those does not decide the order, and a note says how
much it is.

## Traps
- Calls shorter than --osrt-threshold (1 µs unless it was changed) were not recorded: Num Calls is not how often the program called.
- Most of these calls wait. A thread that waits for work in `poll` or `pthread_cond_wait` all day is idle, not slow.
- Threads and processes run side by side: a total may exceed the run's wall time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.base import one_of
from warplens.stats.calls import calls_sum

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = 2  # its place among the tables that `warplens stats` prints unasked, as in nsys
_PER = {"function": (), "target": (), "object": (), "process": ("process",), "thread": ("process", "thread")}

_ABOUT = {
    "target": {"Target": "coalesce(target, '')"},
    "object": {"Object": "CASE WHEN object IS NULL THEN '' ELSE printf('0x%x', object) END"},
}


def table(report: Report, selection: Selection, *, by: str = "function") -> pa.Table:
    """Return the summary; MissingData where no call was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides calls further, beside their function: `function` (nothing), `target`, `object`, `process` or `thread`.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {**_ABOUT.get(by, {}), "Name": "name"}
    return calls_sum(
        report, selection, "osrt", keys=keys, per=per, missing="OS runtime trace data", count="Num Calls"
    )
