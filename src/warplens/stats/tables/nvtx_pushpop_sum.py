"""NVTX Push/Pop Range Summary.

## What it shows
How often each NVTX push/pop range ran, and how long it took: one row per name.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the durations; StdDev is that of a sample (n-1), 0 for one range.
- Instances: how many ranges.
- Range: `domain:name`; ranges of the default domain print `:name`.

## How it is computed
As nvtx_sum, over the push/pop ranges alone.

## Traps
- Operators of PyTorch are not here: op_sum has them. Ranges that the program named (`record_function`) are.
- Totals are not additive: an outer range's time holds that of the ranges inside. nvtx_pushpop_trace has the time without them.
- Threads and processes run side by side: a total may exceed the run's wall time.
- Ranges that were still open when their process ended are counted up to then, and a note says how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.summary import nvtx_summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary of the push/pop ranges; MissingData where there is none."""
    return nvtx_summary(report, selection, style="PushPop")
