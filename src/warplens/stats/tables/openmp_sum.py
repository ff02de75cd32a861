"""OpenMP Summary.

## What it shows
Events of the OpenMP runtime, with number and duration: parallel regions, waits, tasks, locks.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): StdDev is the sample standard deviation (n-1), 0 for
  a single value.
- Count: number of events.
- Host, Rank, PID: the process, with `:by=process` and `:by=thread`. Each is shown only if rows
  differ in it.
- TID, Thread: with `:by=thread`.
- Kind: `parallel`, `sync region wait`, `task`, …; Name: as it was recorded.

## How it is computed
Each recorded row of `openmp_events` counts with its full duration. All threads and processes are
combined, unless `:by` divides them. With --filter-time, rows that overlap the time count. With
--filter-nvtx, rows count whose thread was in such a range. The largest total comes first.

## Traps
- A region, and the work and waits inside it, are separate rows. Their times overlap: do not add
  them up.
- `sync region wait` is the time of threads that finished early. The cause is the uneven work before
  it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.base import one_of
from warplens.stats.calls import calls_sum

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = 7  # its place among the tables that `warplens stats` prints unasked, as in nsys
_PER = {"function": (), "process": ("process",), "thread": ("process", "thread")}


def table(report: Report, selection: Selection, *, by: str = "function") -> pa.Table:
    """Return the summary; raises MissingData if nothing of it was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together), `process` or `thread`: rows for each, beside the name.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Kind": "kind", "Name": "coalesce(name, kind)"}
    return calls_sum(
        report, selection, "openmp_events", keys=keys, per=per, missing="OpenMP event data", count="Count"
    )
