"""NVTX Start/End Range Trace.

## What it shows
Every NVTX start/end range, in order of start, with its threads, task and parent. Ranges of
asynchronous code (coroutines, generators) have this style.

## Columns
- Start, End (ns): time since the start of the report. Duration (ns).
- Name: `domain:name`; the default domain is empty.
- PID, TID: process and thread id of the system. EndTID: thread that ended it; empty if it is the
  same thread.
- Lvl: number of ranges around it; 0 for a range without a task and a parent.
- RangeId, ParentId: id of the range in this report, and of the innermost range around it.
- RangeStack: ids from the outermost range to this one, each after a colon, e.g. `:1:7:9`.
- Task: the asyncio or trio task, or generator, that it ran in; only in reports with tasks.
- Payload, EndPayload: data that the program attached to the range, and to its end, e.g.
  `{batch: 3, loss: 0.25}`; only if there is any.

## How it is computed
Parents are those of the report: within a task the range around it; for a task's first ranges, the
range that was open where the task was created. A filter leaves out rows, but not their ids in Lvl
and RangeStack.

## Traps
- A task may outlive the range that created it: a parent may end before its children.
- The time of a range in a task includes waiting, while other tasks ran on its thread.
- Ranges that were still open when their process ended count up to that moment. A note says how
  many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.errors import MissingData
from warplens.stats.summary import range_names, with_unfinished
from warplens.stats.trace_columns import payload_columns, task_column
from warplens.stats.traces import system_ids, traced

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; raises MissingData if there is no start/end range."""
    trace = traced(report, selection, "StartEnd")
    rows = trace.rows
    if not rows.num_rows:
        raise MissingData(f"does not contain NVTX start/end range data{selection.place(report)}.")
    columns = {
        "Start (ns)": pc.subtract(rows.column("start"), report.origin),
        "End (ns)": pc.subtract(rows.column("end"), report.origin),
        "Duration (ns)": pc.subtract(rows.column("end"), rows.column("start")),
        "Name": range_names(rows.column("domain"), rows.column("message")),
        "PID": system_ids(report, rows, "processes", column="pid"),
        "TID": system_ids(report, rows, "threads", column="tid"),
        "EndTID": system_ids(report, rows, "threads", column="tid", key="end_thread"),
        "Lvl": rows.column("level"),
        "RangeId": rows.column("id"),
        "ParentId": rows.column("parent"),
        "RangeStack": rows.column("stack"),
    }
    extra = task_column(report, rows) | payload_columns(report, rows, "range")
    return with_unfinished(pa.table(columns | extra), trace.unfinished)
