"""NVTX GPU Projection Trace.

## What it shows
When the GPU worked for each NVTX range: from the begin of the first operation that was launched in the range to the end of the last.

## Columns
- Name: `domain:name`; the default domain is empty.
- Projected Start (ns): when the first operation began, from the begin of the report. Projected Duration (ns): to the end of the last.
- Orig Start, Orig Duration (ns): of the range itself.
- Style: PushPop or StartEnd.
- PID, TID: system ids of process and thread.
- NumGPUOps: how many kernels, copies, memsets and graphs were launched in it.
- Lvl: how many of the ranges listed here enclose it. NumChild: how many of them are directly inside it.
- RangeId, ParentId: the range's id in this report, and that of the innermost listed range that encloses it.
- RangeStack: ids from the outermost range to this one, each after a colon, e.g. `:1:7:9`.

## How it is computed
A range contains an operation when the call that launched it began in the range, on the range's thread; so an outer range contains what
the inner ones do. Ranges without operations are left out, and so are those that end on another thread than they began on. With a
filter, ranges that overlap the selected time, with all their operations.

## Traps
- A projected range is not the time that the GPU worked: there may be gaps in it, and work of others.
- Projected ranges of one thread may overlap where it launches into several streams, or onto several GPUs.
- Of coroutines that take turns on a thread, a range contains what others launched meanwhile.
- Kernels in a graph belong to the range in which the graph was launched, not to that in which it was captured.
- One line per range: millions make a long text. Take --filter-time or --filter-nvtx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.stats.projections import projections
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; MissingData where no range launched anything."""
    rows = projections(report, selection, stacks=True)
    return pa.table(
        {
            "Name": pc.cast(rows.column("name"), pa.string()),
            "Projected Start (ns)": pc.subtract(rows.column("first"), report.origin),
            "Projected Duration (ns)": pc.subtract(rows.column("last"), rows.column("first")),
            "Orig Start (ns)": pc.subtract(rows.column("start"), report.origin),
            "Orig Duration (ns)": pc.subtract(rows.column("end"), rows.column("start")),
            "Style": pc.cast(rows.column("style"), pa.string()),
            "PID": system_ids(report, rows, "processes", column="pid"),
            "TID": system_ids(report, rows, "threads", column="tid"),
            "NumGPUOps": rows.column("operations"),
            "Lvl": rows.column("level"),
            "NumChild": rows.column("number"),
            "RangeId": rows.column("id"),
            "ParentId": rows.column("parent"),
            "RangeStack": rows.column("stack"),
        }
    )
