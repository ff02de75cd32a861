"""OpenMP Summary.

## What it shows
What the runtime of OpenMP did: parallel regions, waits, tasks, locks, and how long each took.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): StdDev is that of a sample (n-1), 0 for one.
- Count: how many.
- Host, Rank, PID: of the process, with `:by=process` and `:by=thread`; each only where the rows differ in it.
- TID, Thread: with `:by=thread`.
- Kind: `parallel`, `sync region wait`, `task`, …; Name: as it was recorded.

## How it is computed
Every recorded row of `openmp_events` counts with its whole length, of all threads and processes together unless `:by` keeps them
apart. With --filter-time, those that overlap the time; with --filter-nvtx, those of threads that were in such a range themselves. The
greatest total comes first.

## Traps
- A region, the work in it and the waits in it are separate rows: their times overlap, do not add them up.
- Time in `sync region wait` is that of threads that were done early; the imbalance lies in the work before it.
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
    """Return the summary; MissingData where nothing of it was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides rows further, beside their name: `function` (nothing), `process` or `thread`.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Kind": "kind", "Name": "coalesce(name, kind)"}
    return calls_sum(
        report, selection, "openmp_events", keys=keys, per=per, missing="OpenMP event data", count="Count"
    )
