"""CUDA GPU Kernel/Grid/Block Summary.

## What it shows
How often each kernel ran with each size of grid and block, and how long it took on the GPU.

## Columns
- Time (%): the row's share of the Total Time of the rows of its GPU and process; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the runs; StdDev is that of a sample (n-1), 0 for one run.
- Instances: how often it ran so.
- Host, Rank, PID, Device: where it ran; each only where rows differ in it. A device is `name (number)`, as CUDA numbers it in the process.
- GridXYZ: how many blocks in x, y and z. BlockXYZ: how many threads a block has in x, y and z.
- Name: the kernel's full name; with `:base` the function alone, with `:mangled` as in the binary.

## How it is computed
As cuda_gpu_kern_sum, with a row per size of grid and block.

## Traps
- Kernels of several streams may run side by side: the total may exceed the time in which the GPU was busy.
- Sizes say how the work was cut up, not how well it fills the GPU: a grid smaller than the number of multiprocessors leaves some idle.
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
    """Return the summary; MissingData where no kernel was recorded.

    Args:
        report: the report.
        selection: which part of it.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the name, with a slash.
        base: the function's name alone, without namespaces, template arguments and parameters.
        mangled: the name as in the binary.
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
