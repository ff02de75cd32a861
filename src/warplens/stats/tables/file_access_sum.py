"""File Access Summary.

## What it shows
Which files the program opened, read and wrote, how much data, and how long it waited for them.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time (ns): all calls on the file. Max (ns): the slowest call. Slowest: the function of that
  call.
- Opens, Reads, Writes, Others: number of calls. Errors: number of failed calls among them.
- Read, Written (MB): bytes that the calls moved, in 10^6.
- Read (MB/s): bytes read divided by the time of the reading calls.
- Host, Rank, PID: the process, with `:by=process`. Each is shown only if rows differ in it.
- File: its path; `[unknown]`: a descriptor from before the recording.

## How it is computed
The rows of `file_access` by path, of all threads and processes together. With --filter-time, calls
that overlap the time count in full. With --filter-nvtx, calls count whose thread was in such a
range. With --window, only the part of a call inside the window counts. The largest total comes
first.

## Traps
- Without --osrt-file-access, calls shorter than --osrt-threshold were not recorded. For a file in
  the page cache, nearly all calls and bytes are then missing.
- Reading through mmap makes no calls.
- A write ends when the page cache has the bytes. Time to reach the disk is in fsync, one of the
  Others.
- Paths are those that the program used: one file may have two rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.phases import chosen, said
from warplens.stats.base import noted, one_of
from warplens.stats.calls import located
from warplens.stats.sums import MEGABYTE, grouped

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_PER = {"file": (), "process": ("process",)}
_FIGURES = {
    "opens": "count(*) FILTER (WHERE operation = 'open')",
    "reads": "count(*) FILTER (WHERE operation = 'read')",
    "writes": "count(*) FILTER (WHERE operation = 'write')",
    "errors": "count(error)",
    "read": "coalesce(sum(bytes) FILTER (WHERE operation = 'read'), 0)::BIGINT",
    "written": "coalesce(sum(bytes) FILTER (WHERE operation = 'write'), 0)::BIGINT",
    "reading": "sum(value) FILTER (WHERE operation = 'read')::BIGINT",
    "slowest": "arg_max(name, value)",
}


def table(report: Report, selection: Selection, *, by: str = "file") -> pa.Table:
    """Return the summary; raises MissingData if no call on a file was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `file`, or `process`: files of each process.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {**{name: name for name in per}, "File": "coalesce(path, '[unknown]')"}
    relation, missing = chosen(report, selection, "file_access"), "file access data"
    rows = grouped(
        report, selection, relation, keys=keys, missing=missing, per=(), where="true", more=_FIGURES
    )
    others = rows.column("count")
    for name in ("opens", "reads", "writes"):
        others = pc.subtract(others, rows.column(name))
    read = _floats(rows.column("read"))
    reading = pc.if_else(pc.greater(rows.column("reading"), 0), rows.column("reading"), None)
    columns = {
        "Time (%)": rows.column("share"),
        "Total Time (ns)": rows.column("total"),
        "Opens": rows.column("opens"),
        "Reads": rows.column("reads"),
        "Writes": rows.column("writes"),
        "Others": others,
        "Errors": rows.column("errors"),
        "Read (MB)": pc.divide(read, MEGABYTE),
        "Written (MB)": pc.divide(_floats(rows.column("written")), MEGABYTE),
        "Read (MB/s)": pc.divide(pc.divide(read, MEGABYTE), pc.divide(_floats(reading), 1e9)),
        "Max (ns)": rows.column("max"),
        "Slowest": rows.column("slowest"),
        **located(report, rows),
        "File": rows.column("File"),
    }
    return noted(pa.table(columns), said(report, selection))


def _floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(column, pa.float64(), safe=False)
