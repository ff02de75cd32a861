"""CUDA GPU Summary (Kernels/MemOps).

## What it shows
Number and duration of everything that the GPU did: kernels, copies, memsets and graphs, one row per
name, and per GPU and process if there are several.

## Columns
- Time (%): the row's share of the Total Time of its GPU and process, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the operations. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Instances: number of operations.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it. A device is
  `name (number)`, with CUDA's number in the process.
- Category: `CUDA_KERNEL`, `MEMORY_OPER` or `CUDA_GRAPH` (graphs that were recorded as a whole).
- Operation: the kernel's full name (`:base`, `:mangled`: as in cuda_gpu_kern_sum),
  `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`, `[CUDA graph 3]`.

## How it is computed
Each operation counts with its full duration. With a filter, operations that overlap the selected
time count in full. With --window, operations that were launched in the window count. Rows are
sorted by GPU, then by total, largest first. `:all-gpus` prints one row for all GPUs together, as
nsys does; `:by=stream`, `process` or `rank` divide otherwise.

## Traps
- Streams run at the same time: totals may exceed the time in which the GPU was busy, and a copy
  beside a kernel costs nothing.
- The duration of a graph includes all of its nodes and the gaps between them.
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
    """Return the summary; raises MissingData if no GPU did anything.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the kernel's name,
            with a slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
        by: `device`, `process`, `rank` or `stream`: one row for each.
        all_gpus: sum over all GPUs and processes.
    """
    relation = operations(naming(base, mangled), nvtx_name)
    keys = {"Category": "category", "Operation": "operation"}
    apart = None if all_gpus else By.of(report, by)
    rows = grouped_by(
        report, selection, apart, relation=relation, keys=keys, missing="CUDA kernel or GPU memory data"
    )
    return summary(report, rows, list(keys), by=apart)
