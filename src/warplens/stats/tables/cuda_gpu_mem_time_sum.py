"""CUDA GPU MemOps Summary (by Time).

## What it shows
Number and duration of the GPU's copies and memsets: one row per kind of operation, and per GPU and
process if there are several.

## Columns
- Time (%): the row's share of the Total Time of its GPU and process, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the operations. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Count: number of operations.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it. A device is
  `name (number)`, with CUDA's number in the process.
- Operation: e.g. `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`; migrations of unified memory are
  `[CUDA memcpy Unified …]`.

## How it is computed
Each operation counts with its full duration. With a filter, operations that overlap the selected
time count in full. With --window, operations that were launched in the window count. Rows are
sorted by GPU, then by total, largest first. `:all-gpus` prints one row for all GPUs together, as
nsys does; `:by=stream`, `process` or `rank` divide otherwise.

## Traps
- Copies run at the same time as kernels and other copies: their time is not necessarily lost.
- A copy from or to pageable memory passes through a buffer of the driver: the call takes longer
  than the copy on the GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import MEMORY, operations
from warplens.stats.by import By
from warplens.stats.sums import grouped_by, summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = 5  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection, *, by: str = "device", all_gpus: bool = False) -> pa.Table:
    """Return the summary; raises MissingData if nothing was copied or set.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `process`, `rank` or `stream`: one row for each.
        all_gpus: sum over all GPUs and processes.
    """
    relation = operations(categories=[MEMORY])
    keys = {"Operation": "operation"}
    apart = None if all_gpus else By.of(report, by)
    rows = grouped_by(report, selection, apart, relation=relation, keys=keys, missing="GPU memory data")
    return summary(report, rows, ["Operation"], count="Count", by=apart)
