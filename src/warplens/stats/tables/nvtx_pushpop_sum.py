"""NVTX Push/Pop Range Summary.

## What it shows
Number and duration of the NVTX push/pop ranges: one row per name.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the ranges. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Instances: number of ranges.
- Range: `domain:name`; ranges of the default domain print `:name`.

## How it is computed
As nvtx_sum, with push/pop ranges only.

## Traps
- Operators of PyTorch are not here: op_sum has them. Ranges that the program named
  (`record_function`) are.
- Totals do not add up: an outer range includes the time of its inner ranges. nvtx_pushpop_trace has
  the time without them.
- Threads and processes run at the same time: a total may exceed the wall time of the run.
- Ranges that were still open when their process ended count up to that moment. A note says how
  many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.summary import nvtx_summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary of the push/pop ranges; raises MissingData if there is none."""
    return nvtx_summary(report, selection, style="PushPop")
