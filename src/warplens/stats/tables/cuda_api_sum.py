"""CUDA API Summary.

## What it shows
How often each function of the CUDA runtime and driver was called, and how long the calls took.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the calls; StdDev is that of a sample (n-1), 0 for one call.
- Num Calls: how many calls.
- Host, Rank, PID: with `:by=process` or `:by=rank`, where; each only where the rows differ in it.
- Name: the function.

## How it is computed
Every call counts with its whole length, of all threads and processes together unless `:by=…` keeps them apart; with a
filter, calls that overlap the selected time,
with --window the piece of them that lies in the window. The greatest total comes first.

## Traps
- The time of a call is not work of the CPU: cudaStreamSynchronize and blocking copies mostly wait for the GPU, launches for a full queue.
- A call of the runtime may hold calls of the driver; where both were recorded, that time is in two rows.
- Threads and processes run side by side: a total may exceed the run's wall time.
- The first calls load modules and create the context; a Max far above the Med is often that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.base import one_of
from warplens.stats.by import By
from warplens.stats.sums import grouped_by, summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

BY = ("process", "rank")
DEFAULT = 3  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection, *, by: str = "") -> pa.Table:
    """Return the summary; MissingData where no call was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: `process` or `rank`: column that divides the rows; nothing for all together.
    """
    apart = By.of(report, one_of("by", by, BY)) if by else None
    rows = grouped_by(
        report, selection, apart, relation="cuda_api", keys={"Name": "name"}, missing="CUDA trace data"
    )
    return summary(report, rows, ["Name"], count="Num Calls", by=apart)
