"""CUDA API Summary.

## What it shows
Number and duration of the calls of each CUDA runtime and driver function.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the calls. StdDev is the sample standard
  deviation (n-1), 0 for a single value.
- Num Calls: number of calls.
- Host, Rank, PID: the process, with `:by=process` or `:by=rank`. Each is shown only if rows differ
  in it.
- Name: the function.

## How it is computed
Each call counts with its full duration. All threads and processes are combined, unless `:by=…`
divides them. With a filter, calls that overlap the selected time count in full. With --window, only
the part inside the window counts. The largest total comes first.

## Traps
- The duration of a call is not CPU work. cudaStreamSynchronize and blocking copies mostly wait for
  the GPU, launches wait for a full queue.
- A runtime call may contain driver calls. If both were recorded, that time is in two rows.
- Threads and processes run at the same time: a total may exceed the wall time of the run.
- The first calls load modules and create the context. A Max far above the Med usually means that.
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
    """Return the summary; raises MissingData if no call was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `process` or `rank`: one row for each; empty: all together.
    """
    apart = By.of(report, one_of("by", by, BY)) if by else None
    rows = grouped_by(
        report, selection, apart, relation="cuda_api", keys={"Name": "name"}, missing="CUDA trace data"
    )
    return summary(report, rows, ["Name"], count="Num Calls", by=apart)
