"""CUDA Summary (API/Kernels/MemOps).

## What it shows
Calls of the CUDA API and operations of the GPUs in one table: their number and duration.

## Columns
- Time (%): the row's share of the Total Time of its process, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the calls or operations. StdDev is the
  sample standard deviation (n-1), 0 for a single value.
- Instances: number of calls or operations.
- Host, Rank, PID, Device: where. Each is shown only if rows differ in it. Calls have no device.
- Category: `CUDA_API`, `CUDA_KERNEL`, `MEMORY_OPER` or `CUDA_GRAPH` (graphs that were recorded as a
  whole).
- Operation: the function, or the name of the operation as in cuda_gpu_sum.

## How it is computed
Each call and operation counts with its full duration. With a filter, those that overlap the
selected time count in full. With --window, calls count with their part inside the window, and
operations that were launched in the window count in full. The largest total of a process comes
first. `:all-gpus` prints one row for all processes and GPUs together, as nsys does.

## Traps
- Calls run at the same time as the operations that they launched: never add these rows up.
  cudaDeviceSynchronize takes as long as the kernels that it waits for.
- Streams, threads and processes run at the same time: totals may exceed the wall time of the run.
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
    """Return the summary; raises MissingData if neither calls nor operations were recorded.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the kernel's name,
            with a slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
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
