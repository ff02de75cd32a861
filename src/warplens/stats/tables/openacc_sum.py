"""OpenACC Summary.

## What it shows
Events of the OpenACC runtime, with number and duration: data regions, transfers, launches.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): StdDev is the sample standard deviation (n-1), 0 for
  a single value.
- Count: number of events.
- Host, Rank, PID: the process, with `:by=process` and `:by=thread`. Each is shown only if rows
  differ in it.
- TID, Thread: with `:by=thread`.
- Kind: `data`, `launch` or `other`. Name: the event, with its place in the source if known.

## How it is computed
Each recorded row of `openacc_events` counts with its full duration. All threads and processes are
combined, unless `:by` divides them. With --filter-time, rows that overlap the time count. With
--filter-nvtx, rows count whose thread was in such a range. The largest total comes first.

## Traps
- Times are host times: work that a launch started may run on the GPU long after the row has ended.
  cuda_gpu_sum shows it.
- A construct and the operations for it are separate rows. Their times overlap: do not add them up.
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
    """Return the summary; raises MissingData if nothing of it was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together), `process` or `thread`: rows for each, beside the name.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Kind": "kind", "Name": "name"}
    return calls_sum(
        report, selection, "openacc_events", keys=keys, per=per, missing="OpenACC event data", count="Count"
    )
