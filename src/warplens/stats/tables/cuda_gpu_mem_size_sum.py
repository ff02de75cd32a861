"""CUDA GPU MemOps Summary (by Size).

## What it shows
How much memory was copied and set by the GPU: one row per kind of operation, and per GPU and process where there are several.

## Columns
- Total, Avg, Med, Min, Max, StdDev (MB): of the operations' sizes, in 10^6 bytes; StdDev is that of a sample (n-1), 0 for one.
- Count: how many operations.
- Host, Rank, PID, Device: where; each only where the rows differ in it. A device is `name (number)`, as CUDA numbers it in the process.
- Operation: e.g. `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`; migrations of unified memory are `[CUDA memcpy Unified …]`.

## How it is computed
Every operation that overlaps the selected time, or was launched in the window, counts with its whole size. The greatest total comes
first, GPU by GPU; `:all-gpus` has one row for all of them, as nsys does,
`:by=stream`, `process` or `rank` others.

## Traps
- Many small copies cost more than one large one of the same size: look at Count and Med, and at cuda_gpu_mem_time_sum.
- A copy between two GPUs is one operation, of the GPU that did it.
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
    """Return the summary; MissingData where nothing was copied or set.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, `process`, `rank` or `stream`: column that divides the rows.
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
