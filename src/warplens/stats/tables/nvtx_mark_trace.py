"""NVTX Mark Trace.

## What it shows
Every NVTX mark, in order of time, with its payload.

## Columns
- Time (ns): time since the start of the report.
- Name: `domain:name`; the default domain is empty.
- PID, TID: process and thread id of the system.
- Task: the asyncio or trio task, or generator, that made it; only in reports with tasks.
- Payload: data that the program attached, e.g. `{path: "a.pt"}`; only if there is any.

## How it is computed
The rows of `nvtx_marks`, sorted by time. A filter keeps the marks in its time, including its start.

## Traps
- A mark is a moment: it shows that code was reached, not how long anything took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.errors import MissingData
from warplens.report.cutting import overlaps
from warplens.stats.summary import range_names
from warplens.stats.trace_columns import payload_columns, task_column
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_COLUMNS = ("id", "process", "thread", "start", "domain", "message", "task", "payload_int", "payload_float")


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; raises MissingData if there is no mark."""
    window = selection.window(report)
    rows = report.table("nvtx_marks", _COLUMNS)
    if window is not None:
        rows = rows.filter(overlaps(rows, window))
    if not rows.num_rows:
        raise MissingData(f"does not contain NVTX mark data{selection.place(report)}.")
    rows = rows.take(
        pc.sort_indices(rows, [("start", "ascending"), ("process", "ascending"), ("id", "ascending")])
    )
    columns = {
        "Time (ns)": pc.subtract(rows.column("start"), report.origin),
        "Name": range_names(rows.column("domain"), rows.column("message")),
        "PID": system_ids(report, rows, "processes", column="pid"),
        "TID": system_ids(report, rows, "threads", column="tid"),
    }
    return pa.table(columns | task_column(report, rows) | payload_columns(report, rows, "mark"))
