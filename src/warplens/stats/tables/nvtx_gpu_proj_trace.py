"""NVTX GPU Projection Trace.

## What it shows
When the GPU worked for each NVTX range: from the start of the first operation that was launched in
the range to the end of the last.

## Columns
- Name: `domain:name`; the default domain is empty.
- Projected Start (ns): start of the first operation, since the start of the report. Projected
  Duration (ns): from there to the end of the last.
- Orig Start, Orig Duration (ns): of the range itself.
- Style: PushPop or StartEnd.
- PID, TID: process and thread id of the system.
- NumGPUOps: kernels, copies, memsets and graphs launched in it.
- Lvl: number of listed ranges around it. NumChild: number of listed ranges directly inside it.
- RangeId, ParentId: id of the range in this report, and of the innermost listed range around it.
- RangeStack: ids from the outermost range to this one, each after a colon, e.g. `:1:7:9`.

## How it is computed
A range contains an operation if the launching call began in the range, on the range's thread. An
outer range therefore contains the operations of its inner ranges. Ranges without operations are
left out, and ranges that end on a different thread. With a filter, ranges that overlap the selected
time, with all their operations.

## Traps
- A projected range is not busy time: it may contain gaps and other work.
- Projected ranges of one thread may overlap if it launches into several streams or GPUs.
- If coroutines take turns on a thread, a range includes operations that other coroutines launched.
- Kernels of a graph belong to the range that launched the graph, not to the range that captured it.
- One line per range: millions make a long text. Use --filter-time or --filter-nvtx.
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
    """Return the trace; raises MissingData if no range launched anything."""
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
