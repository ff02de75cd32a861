"""CUDA Kernel Launch & Exec Time Summary.

## What it shows
Three times of each kernel: of its calls, of its wait in the queue, and of its execution; and the
total of the three. One row per kernel, calling thread, call and GPU.

## Columns
- PID, TID: process and thread id of the system. DevId: CUDA's number of the device in the process.
- Count: number of launches. QCount: launches that waited: the kernel began after the call had
  ended.
- TAvg, TMed, TMin, TMax, TStdDev (ns): from the start of the call to the end of the kernel, or of
  the call if that is later.
- AAvg … AStdDev (ns): duration of the call. QAvg … QStdDev (ns): duration of the wait, over the
  launches that waited; empty if none did. KAvg … KStdDev (ns): duration of the kernel.
- API Name: the call. Kernel Name: the kernel's full name; with `:base` the function name alone,
  with `:mangled` the name in the binary.

## How it is computed
From the rows of cuda_kern_exec_trace. The largest sum of total times comes first. StdDev is the
sample standard deviation (n-1), 0 for one launch. With a filter, launches that overlap the selected
time count in full. Kernels without a recorded call are left out, and a note says how many.

## Traps
- A long wait costs nothing as long as the GPU is busy. If there are no waits and kernels are
  shorter than their calls, launching is the bottleneck.
- A long call may have waited for room in the queue, or loaded a module: compare AMed with AMax.
- All kernels of a graph share the call that launched the graph: those of its later nodes seem to
  wait long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.stats.base import noted
from warplens.stats.launches import launched, nothing_launched, whole_graphs, without_call
from warplens.stats.sums import naming
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_VALUES = {"T": "total", "A": "call_end - call_start", "Q": "queue", "K": "kernel_end - kernel_start"}
_FIGURES = {
    "Avg": "avg({})",
    "Med": "median({})::DOUBLE",
    "Min": "min({})",
    "Max": "max({})",
    "StdDev": "CASE WHEN count({0}) > 0 THEN coalesce(stddev_samp({0}), 0.0) END",
}


def table(
    report: Report,
    selection: Selection,
    *,
    nvtx_name: bool = False,
    base: bool = False,
    mangled: bool = False,
) -> pa.Table:
    """Return the summary; raises MissingData if no kernel has its call.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the name, with a
            slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
    """
    figures = {
        f"{kind}{name} (ns)": text.format(value)
        for kind, value in _VALUES.items()
        for name, text in _FIGURES.items()
    }
    rows = report.sql(f"""
    SELECT process, thread, device AS "DevId", count(*) AS "Count", count(queue) AS "QCount",
           {", ".join(f'{text} AS "{name}"' for name, text in figures.items())},
           call AS "API Name", operation AS "Kernel Name", sum(total) AS sum
    FROM {launched(report, selection, naming(base, mangled), nvtx=nvtx_name)} GROUP BY process, thread, device, call, operation
    ORDER BY sum DESC, "API Name", "Kernel Name", process, thread, device
    """)
    if not rows.num_rows:
        raise nothing_launched(report, selection)
    ids = {
        "PID": system_ids(report, rows, "processes", column="pid"),
        "TID": system_ids(report, rows, "threads", column="tid"),
    }
    launches = pc.sum(rows.column("Count")).as_py()
    names = ("DevId", "Count", "QCount", *figures, "API Name", "Kernel Name")
    summary = pa.table(ids | {name: rows.column(name) for name in names})
    return noted(summary, without_call(report, selection, launches), whole_graphs(report, selection))
