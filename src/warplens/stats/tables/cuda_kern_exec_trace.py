"""CUDA Kernel Launch & Exec Time Trace.

## What it shows
Every launch of a kernel, in the order of the calls: how long the call took, how long the kernel waited, how long it ran.

## Columns
- API Start (ns): from the begin of the report. API Dur (ns): of the call.
- Queue Start, Queue Dur (ns): from the end of the call to the begin of the kernel; empty where the kernel began before the call ended.
- Kernel Start, Kernel Dur (ns): of the kernel on the GPU.
- Total Dur (ns): from the begin of the call to the end of the kernel, or of the call where that is later.
- PID, TID: system ids of process and thread. DevId: CUDA's number of the device in the process.
- API Function: the call. GridXYZ, BlockXYZ: sizes of grid (in blocks) and block (in threads).
- Kernel Name: the kernel's full name; with `:base` the function alone, with `:mangled` as in the binary.

## How it is computed
The rows of `kernels`, each joined to its call in `cuda_api`. With a filter, launches that overlap the selected time, from the begin of
the call to the end of the kernel. Kernels without a call are left out, and a note says how many.

## Traps
- Queue Dur holds the time that earlier work of the stream took: a full queue is what a fast program looks like.
- All kernels of a graph have the call that launched the graph: those of its later nodes seem to wait for long.
- One line per launch: millions make a long text. Take --filter-time or --filter-nvtx, or SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.stats.base import noted
from warplens.stats.launches import SIZES, launched, nothing_launched, sizes, whole_graphs, without_call
from warplens.stats.sums import naming
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_TIMES = "call_start, call_end, queue, kernel_start, kernel_end, total"
_COLUMNS = f"process, thread, device, call, operation, {_TIMES}, {', '.join(SIZES)}"


def table(
    report: Report,
    selection: Selection,
    *,
    nvtx_name: bool = False,
    base: bool = False,
    mangled: bool = False,
) -> pa.Table:
    """Return the trace; MissingData where no kernel has its call.

    Args:
        report: the report.
        selection: which part of it.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the name, with a slash.
        base: the function's name alone, without namespaces, template arguments and parameters.
        mangled: the name as in the binary.
    """
    relation = launched(report, selection, naming(base, mangled), nvtx=nvtx_name)
    rows = report.sql(f"SELECT {_COLUMNS} FROM {relation} ORDER BY call_start, kernel_start, id")
    if not rows.num_rows:
        raise nothing_launched(report, selection)
    waits = pc.is_valid(rows.column("queue"))
    columns = {
        "API Start (ns)": pc.subtract(rows.column("call_start"), report.origin),
        "API Dur (ns)": pc.subtract(rows.column("call_end"), rows.column("call_start")),
        "Queue Start (ns)": pc.if_else(waits, pc.subtract(rows.column("call_end"), report.origin), None),
        "Queue Dur (ns)": rows.column("queue"),
        "Kernel Start (ns)": pc.subtract(rows.column("kernel_start"), report.origin),
        "Kernel Dur (ns)": pc.subtract(rows.column("kernel_end"), rows.column("kernel_start")),
        "Total Dur (ns)": rows.column("total"),
        "PID": system_ids(report, rows, "processes", column="pid"),
        "TID": system_ids(report, rows, "threads", column="tid"),
        "DevId": rows.column("device"),
        "API Function": rows.column("call"),
        "GridXYZ": sizes(rows, "grid"),
        "BlockXYZ": sizes(rows, "block"),
        "Kernel Name": rows.column("operation"),
    }
    return noted(
        pa.table(columns), without_call(report, selection, rows.num_rows), whole_graphs(report, selection)
    )
