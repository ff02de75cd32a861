"""NVTX Start/End Range Trace.

## What it shows
Every NVTX start/end range, in the order they began: where it began and ended, and which task and range it belongs to. Ranges of
asynchronous code (coroutines, generators) are of this style.

## Columns
- Start, End (ns): from the begin of the report. Duration (ns).
- Name: `domain:name`; the default domain is empty.
- PID, TID: system ids of process and thread. EndTID: of the thread that ended it; empty where it is the same one.
- Lvl: how many ranges enclose it; those without a task and a parent have 0.
- RangeId, ParentId: the range's id in this report, and that of the innermost range that encloses it.
- RangeStack: ids from the outermost range to this one, each after a colon, e.g. `:1:7:9`.
- Task: the asyncio or trio task, or generator, it ran in; only in reports that have tasks.
- Payload, EndPayload: what the program gave with the range, and when it ended, e.g. `{batch: 3, loss: 0.25}`; only where there are any.

## How it is computed
Parents are those of the report: within a task the range around it, for a task's first ranges the one that was open where the task
was made. A filter leaves rows out, but not out of Lvl and RangeStack.

## Traps
- A task may go on when the range that made it has ended: a parent need not enclose its children in time.
- The time of a range in a task holds the waiting, when other tasks ran on its thread.
- Ranges that were still open when their process ended are counted up to then, and a note says how many.
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
    """Return the trace; MissingData where there is no start/end range."""
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
