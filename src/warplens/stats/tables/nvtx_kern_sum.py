"""NVTX Range Kernel Summary.

## What it shows
Kernels that each NVTX range launched, with number and GPU time: one row per range, thread and
kernel.

## Columns
- NVTX Range: `domain:name`; ranges of the default domain print `:name`. Style: PushPop or StartEnd.
- PID, TID: process and thread id of the system, of the ranges.
- NVTX Inst: number of ranges that launched the kernel. Kern Inst: number of launches.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the kernels. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Kernel Name: the kernel's full name; with `:base` the function name alone, with `:mangled` the
  name in the binary.

## How it is computed
A range launched a kernel if the call began in the range, on the range's thread. A kernel counts in
every range around its launch, outer and inner. Ranges that end on a different thread launch
nothing. With a filter, ranges that overlap the selected time, with all their kernels. The largest
total comes first.

## Traps
- Totals do not add up: an outer range includes the kernels of its inner ranges.
- Kernels of several streams may run at the same time: the total may exceed the time in which the
  GPU was busy.
- If coroutines take turns on a thread, a range includes kernels that other coroutines launched.
- Kernels of a graph belong to the range that launched the graph, not to the range that captured it.
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
    """Return the summary; raises MissingData if no range launched a kernel.

    Args:
        report: the report.
        selection: the part to use.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
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
