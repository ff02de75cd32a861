"""OS Runtime Trace.

## What it shows
Every recorded C library call that reads, writes, waits, sleeps, locks or starts processes, in order
of start.

## Columns
- Start (ns): time since the start of the report. Duration (ns).
- Name: the function. Result: its return value. Error: its errno, e.g. `EAGAIN`; empty if it
  succeeded.
- FD: file descriptor. Target: the file, peer or program of the call. Bytes: bytes that it moved.
  Object: address of the awaited lock.
- Pid, Tid, Thread Name: the calling thread.

## How it is computed
The rows of `osrt`, sorted by time. With --filter-time, calls that overlap the time count. With
--filter-nvtx, calls count whose thread was in such a range.

## Traps
- Calls shorter than --osrt-threshold were not recorded: a thread may have made calls between two
  rows.
- One line per call: millions make a long text. Use --filter-time or --filter-nvtx, or SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.phases import chosen, said
from warplens.errors import MissingData
from warplens.stats.base import noted
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_COLUMNS = 'process, thread, "start", "end", name, result, error, fd, target, bytes, object'


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; raises MissingData if no call was recorded."""
    rows = report.sql(
        f'SELECT {_COLUMNS} FROM {chosen(report, selection, "osrt")} ORDER BY "start", process, id'
    )
    if not rows.num_rows:
        raise MissingData(f"does not contain OS runtime trace data{selection.place(report)}.")
    columns = {
        "Start (ns)": pc.subtract(rows.column("start"), report.origin),
        "Duration (ns)": pc.subtract(rows.column("end"), rows.column("start")),
        "Name": rows.column("name"),
        "Result": rows.column("result"),
        "Error": rows.column("error"),
        "FD": rows.column("fd"),
        "Target": rows.column("target"),
        "Bytes": rows.column("bytes"),
        "Object": rows.column("object"),
        "Pid": system_ids(report, rows, "processes", column="pid"),
        "Tid": system_ids(report, rows, "threads", column="tid"),
        "Thread Name": system_ids(report, rows, "threads", column="name"),
    }
    return noted(pa.table(columns), said(report, selection))
