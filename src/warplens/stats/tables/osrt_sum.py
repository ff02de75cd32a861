"""OS Runtime Summary.

## What it shows
Number and duration of C library calls that read, write, wait, sleep, lock or start processes.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the calls. StdDev is the sample standard
  deviation (n-1), 0 for a single value.
- Num Calls: number of calls.
- Host, Rank, PID: the process, with `:by=process` and `:by=thread`. Each is shown only if rows
  differ in it.
- TID, Thread: with `:by=thread`. Target: with `:by=target`, the file, peer or program of the call.
  Object: with `:by=object`, the address of the lock, condition or semaphore.
- Name: the function.

## How it is computed
Each recorded call counts with its full duration. All threads and processes are combined, unless
`:by` divides them. With --filter-time, calls that overlap the time count in full. With
--filter-nvtx, calls count whose thread was in such a range (in any range of that name, or in the
one whose index is given). With --window, only the part of a call inside the window counts. The
largest total comes first. If Python samples show threads that only wait at one place (98 % of their
samples), their time does not affect the order, and a note says how much it is.

## Traps
- Calls shorter than --osrt-threshold (default: 1 us) were not recorded: the program made more calls
  than Num Calls.
- Most of these calls wait. A thread that waits for work in `poll` or `pthread_cond_wait` all day is
  idle, not slow.
- Threads and processes run at the same time: a total may exceed the wall time of the run.
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
    """Return the summary; raises MissingData if no call was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together), `target`, `object`, `process` or `thread`: rows for each,
            beside the function.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {**_ABOUT.get(by, {}), "Name": "name"}
    return calls_sum(
        report, selection, "osrt", keys=keys, per=per, missing="OS runtime trace data", count="Num Calls"
    )
