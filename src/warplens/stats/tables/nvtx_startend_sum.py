"""NVTX Start/End Range Summary.

## What it shows
How often each NVTX start/end range ran, and how long it took: one row per name.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the durations; StdDev is that of a sample (n-1), 0 for one range.
- Instances: how many ranges.
- Range: `domain:name`; ranges of the default domain print `:name`.

## How it is computed
As nvtx_sum, over the start/end ranges alone.

## Traps
- Start/end ranges may overlap one another, even those of one name: a total may exceed the run's wall time on a single thread.
- A range may end on another thread than it began on; it is counted once.
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
    """Return the summary of the start/end ranges; MissingData where there is none."""
    return nvtx_summary(report, selection, style="StartEnd")
