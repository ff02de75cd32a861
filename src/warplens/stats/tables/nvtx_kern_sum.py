"""NVTX Range Kernel Summary.

## What it shows
Which kernels each NVTX range launched, how often, and how long they ran on the GPU: one row per range, thread and kernel.

## Columns
- NVTX Range: `domain:name`; ranges of the default domain print `:name`. Style: PushPop or StartEnd.
- PID, TID: system ids of process and thread of the ranges.
- NVTX Inst: how many of the ranges launched the kernel. Kern Inst: how often they did.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the kernels; StdDev is that of a sample (n-1), 0 for one.
- Kernel Name: the kernel's full name; with `:base` the function alone, with `:mangled` as in the binary.

## How it is computed
A range launched a kernel when the call began in the range, on the range's thread. A kernel counts in every range around its launch, in
outer and inner ones. Ranges that end on another thread than they began on launch nothing. With a filter, ranges that overlap the
selected time, with all their kernels. The greatest total comes first.

## Traps
- Totals are not additive: an outer range has the kernels of the ranges inside, too.
- Kernels of several streams may run side by side: the total may exceed the time in which the GPU was busy.
- Of coroutines that take turns on a thread, a range has what others launched meanwhile.
- Kernels of a graph belong to the ranges in which they were captured, if the capture was recorded; otherwise, and in nvtx_gpu_proj_sum,
  to those in which the graph was launched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.kernels import range_kernels
from warplens.stats.base import noted
from warplens.stats.launches import whole_graphs
from warplens.stats.projections import missing
from warplens.stats.summary import range_names
from warplens.stats.sums import block, naming
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, base: bool = False, mangled: bool = False) -> pa.Table:
    """Return the summary; MissingData where no range launched a kernel.

    Args:
        report: the report.
        selection: which part of it.
        base: the function's name alone, without namespaces, template arguments and parameters.
        mangled: the name as in the binary.
    """
    rows = range_kernels(report, selection, naming(base, mangled))
    if not rows.num_rows:
        raise missing(report, selection, kernels=True)
    rows = rows.append_column("name", range_names(rows.column("domain"), rows.column("message")))
    rows = rows.set_column(0, "style", pc.cast(rows.column("style"), pa.string()))
    names = ("name", "style", "process", "thread", "kernel")
    rows = rows.sort_by([("total", "descending"), *((name, "ascending") for name in names)])
    summary = pa.table(
        {
            "NVTX Range": rows.column("name"),
            "Style": rows.column("style"),
            "PID": system_ids(report, rows, "processes", column="pid"),
            "TID": system_ids(report, rows, "threads", column="tid"),
            "NVTX Inst": rows.column("ranges"),
            **block(rows, "Total Time (ns)", "ns", count="Kern Inst", count_first=True),
            "Kernel Name": rows.column("kernel"),
        }
    )
    return noted(summary, whole_graphs(report, selection))
