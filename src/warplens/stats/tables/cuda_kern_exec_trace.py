"""CUDA Kernel Launch & Exec Time Trace.

## What it shows
Every kernel launch, in order of the calls: duration of the call, of the wait in the queue, and of
the kernel.

## Columns
- API Start (ns): start of the call, since the start of the report. API Dur (ns): its duration.
- Queue Start, Queue Dur (ns): from the end of the call to the start of the kernel; empty if the
  kernel began before the call ended.
- Kernel Start, Kernel Dur (ns): of the kernel on the GPU.
- Total Dur (ns): from the start of the call to the end of the kernel, or of the call if that is
  later.
- PID, TID: process and thread id of the system. DevId: CUDA's number of the device in the process.
- API Function: the call. GridXYZ, BlockXYZ: size of the grid (in blocks) and of a block (in
  threads).
- Kernel Name: the kernel's full name; with `:base` the function name alone, with `:mangled` the
  name in the binary.

## How it is computed
The rows of `kernels`, each joined with its call in `cuda_api`. With a filter, launches that overlap
the selected time, from the start of the call to the end of the kernel. Kernels without a recorded
call are left out, and a note says how many.

## Traps
- Queue Dur includes the time of earlier work in the stream: a full queue is normal in a fast
  program.
- All kernels of a graph share the call that launched the graph: those of its later nodes seem to
  wait long.
- One line per launch: millions make a long text. Use --filter-time or --filter-nvtx, or SQL.
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
    """Return the trace; raises MissingData if no kernel has its call.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the name, with a
            slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
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
