"""CUDA GPU MemOps Summary (by Size).

## What it shows
How much memory the GPU copied and set: one row per kind of operation, and per GPU and process if
there are several.

## Columns
- Total, Avg, Med, Min, Max, StdDev (MB): sizes of the operations in 10^6 bytes. StdDev is the
  sample standard deviation (n-1), 0 for a single value.
- Count: number of operations.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it. A device is
  `name (number)`, with CUDA's number in the process.
- Operation: e.g. `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`; migrations of unified memory are
  `[CUDA memcpy Unified …]`.

## How it is computed
Each operation that overlaps the selected time, or was launched in the window, counts with its full
size. Rows are sorted by GPU, then by total, largest first. `:all-gpus` prints one row for all GPUs
together, as nsys does; `:by=stream`, `process` or `rank` divide otherwise.

## Traps
- Many small copies cost more than one large copy of the same total size: check Count and Med, and
  cuda_gpu_mem_time_sum.
- A copy between two GPUs is one operation of the GPU that performed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.gpu.ops import MEMORY, operations
from warplens.stats.by import By
from warplens.stats.sums import MEGABYTE, block, grouped_by, where

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = 6  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection, *, by: str = "device", all_gpus: bool = False) -> pa.Table:
    """Return the summary; raises MissingData if nothing was copied or set.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `process`, `rank` or `stream`: one row for each.
        all_gpus: sum over all GPUs and processes.
    """
    relation = operations(categories=[MEMORY])
    apart = None if all_gpus else By.of(report, by)
    rows = grouped_by(
        report,
        selection,
        apart,
        relation=relation,
        keys={"Operation": "operation"},
        missing="GPU memory data",
        value="bytes",
    )
    figures = block(rows, "Total (MB)", "MB", count="Count", scale=MEGABYTE)
    return pa.table({**figures, **where(report, rows, apart), "Operation": rows.column("Operation")})
