"""CUDA GPU Summary (Kernels/MemOps).

## What it shows
Everything the GPU did, and how long it took: kernels, copies, memsets and graphs, one row each by name, and per GPU and process where
there are several.

## Columns
- Time (%): the row's share of the Total Time of the rows of its GPU and process; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the operations; StdDev is that of a sample (n-1), 0 for one.
- Instances: how many.
- Host, Rank, PID, Device: where; each only where the rows differ in it. A device is `name (number)`, as CUDA numbers it in the process.
- Category: `CUDA_KERNEL`, `MEMORY_OPER` or `CUDA_GRAPH` (graphs that were recorded as a whole).
- Operation: the kernel's full name (`:base`, `:mangled`: as in cuda_gpu_kern_sum), `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`,
  `[CUDA graph 3]`.

## How it is computed
Every operation counts with its whole length on the GPU; with a filter, those that overlap the selected time, with --window those
launched in the window. The greatest total comes first, GPU by GPU; `:all-gpus` has one row for all of them, as nsys does,
`:by=stream`, `process` or `rank` others.

## Traps
- Streams run side by side: totals may exceed the time in which the GPU was busy, and a copy beside a kernel costs nothing.
- The time of a graph holds that of all its nodes and the gaps between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import operations
from warplens.stats.by import By
from warplens.stats.sums import grouped_by, naming, summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(
    report: Report,
    selection: Selection,
    *,
    nvtx_name: bool = False,
    base: bool = False,
    mangled: bool = False,
    by: str = "device",
    all_gpus: bool = False,
) -> pa.Table:
    """Return the summary; MissingData where no GPU did anything.

    Args:
        report: the report.
        selection: which part of it.
        nvtx_name: put the innermost NVTX push/pop range around the launch before a kernel's name, with a slash.
        base: the function's name alone, without namespaces, template arguments and parameters.
        mangled: the name as in the binary.
        by: `device`, `process`, `rank` or `stream`: column that divides the rows.
        all_gpus: sum over all GPUs and processes.
    """
    relation = operations(naming(base, mangled), nvtx_name)
    keys = {"Category": "category", "Operation": "operation"}
    apart = None if all_gpus else By.of(report, by)
    rows = grouped_by(
        report, selection, apart, relation=relation, keys=keys, missing="CUDA kernel or GPU memory data"
    )
    return summary(report, rows, list(keys), by=apart)
