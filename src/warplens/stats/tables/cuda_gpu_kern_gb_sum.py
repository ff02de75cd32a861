"""CUDA GPU Kernel/Grid/Block Summary.

## What it shows
Number and duration of the launches of each kernel, by size of grid and block.

## Columns
- Time (%): the row's share of the Total Time of its GPU and process, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the launches. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Instances: number of launches with these sizes.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it. A device is
  `name (number)`, with CUDA's number in the process.
- GridXYZ: blocks in x, y and z. BlockXYZ: threads of a block in x, y and z.
- Name: the kernel's full name; with `:base` the function name alone, with `:mangled` the name in
  the binary.

## How it is computed
As cuda_gpu_kern_sum, with one row per size of grid and block.

## Traps
- Kernels of several streams may run at the same time: the total may exceed the time in which the
  GPU was busy.
- Sizes show how the work was divided, not how well it fills the GPU. A grid smaller than the number
  of multiprocessors leaves some idle.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import kernels
from warplens.stats.base import noted
from warplens.stats.launches import SIZES, no_kernels, sizes, whole_graphs
from warplens.stats.sums import PLACE, grouped, naming, summary

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
    """Return the summary; raises MissingData if no kernel was recorded.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the name, with a
            slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
        all_gpus: sum over all GPUs and processes.
    """
    keys = {name: name for name in SIZES} | {"Name": "operation"}
    relation = kernels(naming(base, mangled), nvtx_name)
    rows = grouped(
        report,
        selection,
        relation,
        keys=keys,
        missing=partial(no_kernels, report, selection),
        per=() if all_gpus else PLACE,
    )
    for position, (name, what) in enumerate((("GridXYZ", "grid"), ("BlockXYZ", "block"))):
        rows = rows.add_column(position, name, sizes(rows, what))
    return noted(summary(report, rows, ["GridXYZ", "BlockXYZ", "Name"]), whole_graphs(report, selection))
