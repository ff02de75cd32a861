"""CUDA GPU MemOps Summary (by Time).

## What it shows
How often memory was copied and set by the GPU, and how long that took: one row per kind of operation, and per GPU and process where
there are several.

## Columns
- Time (%): the row's share of the Total Time of the rows of its GPU and process; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the operations; StdDev is that of a sample (n-1), 0 for one.
- Count: how many operations.
- Host, Rank, PID, Device: where; each only where the rows differ in it. A device is `name (number)`, as CUDA numbers it in the process.
- Operation: e.g. `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`; migrations of unified memory are `[CUDA memcpy Unified …]`.

## How it is computed
Every operation counts with its whole length; with a filter, those that overlap the selected time, with --window those launched in
the window. The greatest total comes first, GPU by GPU; `:all-gpus` has one row for all of them, as nsys does,
`:by=stream`, `process` or `rank` others.

## Traps
- Copies run beside kernels and beside one another: their time need not be lost.
- A copy from or to pageable memory goes through a buffer of the driver: the call takes longer than the copy on the GPU.
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
    """Return the summary; MissingData where nothing was copied or set.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, `process`, `rank` or `stream`: column that divides the rows.
        all_gpus: sum over all GPUs and processes.
    """
    relation = operations(categories=[MEMORY])
    keys = {"Operation": "operation"}
    apart = None if all_gpus else By.of(report, by)
    rows = grouped_by(report, selection, apart, relation=relation, keys=keys, missing="GPU memory data")
    return summary(report, rows, ["Operation"], count="Count", by=apart)
