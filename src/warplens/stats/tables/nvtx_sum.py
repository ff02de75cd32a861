"""NVTX Range Summary.

## What it shows
Number and duration of the NVTX ranges: one row per name and style.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the ranges. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Instances: number of ranges.
- Style: PushPop (nested on a thread) or StartEnd (may overlap and cross threads).
- Range: `domain:name`; ranges of the default domain print `:name`.

## How it is computed
Each range counts with its full duration. All figures are exact, including the median. With a
filter, ranges that overlap the selected time count in full. With --window, only the part inside the
window counts. The largest total comes first.

## Traps
- Operators of PyTorch are not here: op_sum has them. Ranges that the program named
  (`record_function`) are.
- Totals do not add up: an outer range includes the time of its inner ranges, so the same second
  counts once per level.
- Threads and processes run at the same time: a total may exceed the wall time of the run.
- Ranges that were still open when their process ended count up to that moment. A note says how
  many.
- A range shows when code ran, not that the CPU or GPU was busy. A kernel that it launches may run
  later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.summary import nvtx_summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = 1  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary of all ranges; raises MissingData if there is none."""
    return nvtx_summary(report, selection, show_style=True)
