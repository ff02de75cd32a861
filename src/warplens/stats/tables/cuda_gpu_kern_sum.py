"""CUDA GPU Kernel Summary.

## What it shows
Number and GPU time of the launches of each kernel: one row per kernel, and per GPU and process if
there are several.

## Columns
- Time (%): the row's share of the Total Time of its GPU and process, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the launches. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Instances: number of launches.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it. A device is
  `name (number)`, with CUDA's number in the process.
- Name: the kernel's full name; with `:base` the function name alone, with `:mangled` the name in
  the binary.

## How it is computed
Each launch counts with its full duration on the GPU. With a filter, kernels that overlap the
selected time count in full. With --window, kernels that were launched in the window count. Rows are
sorted by GPU, then by total, largest first. `:all-gpus` prints one row for all GPUs together, as
nsys does; `:by=stream`, `process` or `rank` divide otherwise.

## Traps
- Kernels of several streams may run at the same time: the total may exceed the time in which the
  GPU was busy.
- A kernel that waits for other GPUs, such as those of NCCL, takes time without doing work.
- `:base` combines all instances of a template, which may differ in type and duration.
- Kernels inside graphs that were recorded as a whole are missing, and a note says so. cuda_gpu_sum
  lists the graphs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.kernel_durations import kernel_durations
from warplens.analysis.gpu.ops import kernels
from warplens.stats.base import noted
from warplens.stats.by import By
from warplens.stats.launches import no_kernels, whole_graphs
from warplens.stats.sums import PLACE, grouped_by, naming, summary

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = 4  # its place among the tables that `warplens stats` prints unasked, as in nsys


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
    """Return the summary; raises MissingData if no kernel was recorded.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the name, with a
            slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
        by: `device`, `process`, `rank` or `stream`: one row for each.
        all_gpus: sum over all GPUs and processes.
    """
    chosen, apart = naming(base, mangled), None if all_gpus else By.of(report, by)
    if nvtx_name or mangled or apart is None or apart.by != "device":
        missing = partial(no_kernels, report, selection)
        rows = grouped_by(
            report,
            selection,
            apart,
            relation=kernels(chosen, nvtx_name),
            keys={"Name": "operation"},
            missing=missing,
        )
    else:
        rows = _kernels(kernel_durations(report, selection, "name" if base else "demangled"))
        if not rows.num_rows:
            raise no_kernels(report, selection)
    return noted(summary(report, rows, ["Name"], by=apart), whole_graphs(report, selection))


def _kernels(rows: pa.Table) -> pa.Table:
    """Order rows as `grouped` does, and add the share of each in the total of its GPU."""
    rows = rows.rename_columns([{"operation": "Name"}.get(name, name) for name in rows.column_names])
    rows = rows.sort_by(
        [("process", "ascending"), ("device", "ascending"), ("total", "descending"), ("Name", "ascending")]
    )
    process, device, total = (rows.column(name).to_numpy() for name in (*PLACE, "total"))
    # `new`: first row of each GPU, `which`: the GPU's number for each row. For rows of the GPUs [0,
    # 0, 1] they are [0, 2] and [0, 0, 1].
    new = np.flatnonzero((np.diff(process, prepend=-1) != 0) | (np.diff(device, prepend=-1) != 0))
    which = np.searchsorted(new, np.arange(len(total)), side="right") - 1
    whole = np.bincount(which, weights=total)[which] if len(total) else total
    return rows.append_column(
        "share", pa.array(np.where(whole > 0, 100.0 * total / np.where(whole > 0, whole, 1), 0.0))
    )
