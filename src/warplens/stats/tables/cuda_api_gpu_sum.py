"""CUDA Summary (API/Kernels/MemOps).

## What it shows
Calls of the CUDA API and what GPUs did, in one table: how often, and how long it took.

## Columns
- Time (%): the row's share of the Total Time of the rows of its process; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the calls or operations; StdDev is that of a sample (n-1), 0 for one.
- Instances: how many.
- Host, Rank, PID, Device: where; each only where the rows differ in it. Calls have no device.
- Category: `CUDA_API`, `CUDA_KERNEL`, `MEMORY_OPER` or `CUDA_GRAPH` (graphs that were recorded as a whole).
- Operation: the function, or what cuda_gpu_sum calls it.

## How it is computed
Every call and operation counts with its whole length; with a filter, those that overlap the selected time, with --window the piece of
the calls that lies in the window, and the operations launched in it, whole. The greatest total of a process comes first;
`:all-gpus` has one row for all processes and GPUs together, as nsys does.

## Traps
- Calls and what they launched run at the same time: never add these rows up. cudaDeviceSynchronize takes as long as
  the kernels it waits for.
- Streams, threads and processes run side by side: totals may exceed the run's wall time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import operations
from warplens.stats.sums import grouped, naming, summary

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(
    report: Report,
    selection: Selection,
    *,
    nvtx_name: bool = False,
    base: bool = False,
    mangled: bool = False,
    all_gpus: bool = False,
) -> pa.Table:
    """Return the summary; MissingData where neither calls nor operations were recorded.

    Args:
        report: the report.
        selection: which part of it.
        nvtx_name: put the innermost NVTX push/pop range around the launch before a kernel's name, with a slash.
        base: the function's name alone, without namespaces, template arguments and parameters.
        mangled: the name as in the binary.
        all_gpus: sum over all GPUs and processes.
    """
    calls = 'SELECT process, NULL::INTEGER AS device, "start", "end", \'CUDA_API\' AS category, name AS operation FROM cuda_api'
    ran = f'SELECT process, device, "start", "end", category, operation FROM {operations(naming(base, mangled), nvtx_name)}'
    keys = {"device": "device", "Category": "category", "Operation": "operation"}
    if all_gpus:
        del keys["device"]
    rows = grouped(
        report,
        selection,
        f"({calls} UNION ALL {ran})",
        keys=keys,
        missing="CUDA trace data",
        per=() if all_gpus else ("process",),
    )
    return summary(report, rows, ["Category", "Operation"])
