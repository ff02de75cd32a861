"""NVTX Range Summary.

## What it shows
How often each NVTX range ran, and how long it took: one row per name and style.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the durations; StdDev is that of a sample (n-1), 0 for one range.
- Instances: how many ranges.
- Style: PushPop (nested on a thread) or StartEnd (may overlap and cross threads).
- Range: `domain:name`; ranges of the default domain print `:name`.

## How it is computed
Every range counts with its whole length from start to end; all figures are exact, the median too. With a filter, ranges that
overlap the selected time count, still with their whole length; with --window, the piece of them that lies in the window. The greatest
total comes first.

## Traps
- Operators of PyTorch are not here: op_sum has them. Ranges that the program named (`record_function`) are.
- Totals are not additive: an outer range's time holds that of the ranges inside, so the same second is counted once per level.
- Threads and processes run side by side: a total may exceed the run's wall time.
- Ranges that were still open when their process ended are counted up to then, and a note says how many.
- A range says when code ran, not that the CPU or GPU was busy; a GPU kernel launched inside may run later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.summary import nvtx_summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = 1  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary of all ranges; MissingData where there is none."""
    return nvtx_summary(report, selection, show_style=True)
