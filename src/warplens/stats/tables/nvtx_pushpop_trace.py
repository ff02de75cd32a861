"""NVTX Push/Pop Range Trace.

## What it shows
Every NVTX push/pop range, in order of start, with its place in the nesting of its thread.

## Columns
- Start, End (ns): time since the start of the report.
- Duration, DurChild, DurNonChild (ns): of the range; of the ranges directly inside it; the
  difference.
- Name: `domain:name`; the default domain is empty.
- PID, TID: process and thread id of the system.
- Lvl: number of ranges around it. NumChild: number of ranges directly inside it.
- RangeId, ParentId: id of the range in this report, and of the innermost range around it.
- RangeStack: ids from the outermost range to this one, each after a colon, e.g. `:1:7:9`.
- NameTree: the name, indented by `--` per level.
- Task: the asyncio or trio task, or generator, that it ran in; only in reports with tasks.
- Payload, EndPayload: data that the program attached to the range, and to its end, e.g.
  `{batch: 3, loss: 0.25}`; only if there is any.

## How it is computed
Parents are those of the report: ranges on one thread or in one task, of all domains together.
DurChild sums the push/pop ranges directly inside. Lvl and RangeStack also count the start/end
ranges around the ranges of a task. A filter leaves out rows; ranges that it leaves out still count
in Lvl, NumChild, DurChild and RangeStack.

## Traps
- Ranges of two domains may cross. Then neither is the other's child.
- DurNonChild is time outside of annotated children, not idle time.
- One line per range: millions make a long text. Use --filter-time or --filter-nvtx, or SQL.
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
    """Return the trace; raises MissingData if there is no push/pop range."""
    trace = traced(report, selection, "PushPop")
    rows = trace.rows
    if not rows.num_rows:
        raise MissingData(f"does not contain NVTX push/pop range data{selection.place(report)}.")
    duration = pc.subtract(rows.column("end"), rows.column("start"))
    names = range_names(rows.column("domain"), rows.column("message"))
    columns = {
        "Start (ns)": pc.subtract(rows.column("start"), report.origin),
        "End (ns)": pc.subtract(rows.column("end"), report.origin),
        "Duration (ns)": duration,
        "DurChild (ns)": rows.column("time"),
        "DurNonChild (ns)": pc.subtract(duration, rows.column("time")),
        "Name": names,
        "PID": system_ids(report, rows, "processes", column="pid"),
        "TID": system_ids(report, rows, "threads", column="tid"),
        "Lvl": rows.column("level"),
        "NumChild": rows.column("number"),
        "RangeId": rows.column("id"),
        "ParentId": rows.column("parent"),
        "RangeStack": rows.column("stack"),
        "NameTree": pc.binary_join_element_wise(pc.binary_repeat("--", rows.column("level")), names, ""),
    }
    extra = task_column(report, rows) | payload_columns(report, rows, "range")
    return with_unfinished(pa.table(columns | extra), trace.unfinished)
