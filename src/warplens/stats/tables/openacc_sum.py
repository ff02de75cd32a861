"""OpenACC Summary.

## What it shows
What the runtime of OpenACC did: data regions, transfers, launches, and how long each took.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): StdDev is that of a sample (n-1), 0 for one.
- Count: how many.
- Host, Rank, PID: of the process, with `:by=process` and `:by=thread`; each only where the rows differ in it.
- TID, Thread: with `:by=thread`.
- Kind: `data`, `launch` or `other`; Name: what, with the place in the source where that is known.

## How it is computed
Every recorded row of `openacc_events` counts with its whole length, of all threads and processes together unless `:by` keeps them
apart. With --filter-time, those that overlap the time; with --filter-nvtx, those of threads that were in such a range themselves. The
greatest total comes first.

## Traps
- It is time of the host: what a launch started may run on the GPU long after the row has ended. cuda_gpu_sum shows that.
- A construct and what is done for it are separate rows: their times overlap, do not add them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.base import one_of
from warplens.stats.calls import calls_sum

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = 11  # its place among the tables that `warplens stats` prints unasked, as in nsys
_PER = {"function": (), "process": ("process",), "thread": ("process", "thread")}


def table(report: Report, selection: Selection, *, by: str = "function") -> pa.Table:
    """Return the summary; MissingData where nothing of it was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides rows further, beside their name: `function` (nothing), `process` or `thread`.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Kind": "kind", "Name": "name"}
    return calls_sum(
        report, selection, "openacc_events", keys=keys, per=per, missing="OpenACC event data", count="Count"
    )
