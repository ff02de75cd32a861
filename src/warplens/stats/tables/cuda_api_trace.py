"""CUDA API Trace.

## What it shows
Every call of the CUDA runtime and driver, in order of start.

## Columns
- Start (ns): time since the start of the report. Duration (ns).
- Name: the function.
- Result: its return value; 0 is success.
- CorrID: number that joins the call with the work that it launched (CorrId in cuda_gpu_trace);
  unique within the process.
- Pid, Tid: process and thread id of the system. T-Pri: priority of the thread; empty if unknown.
  Thread Name.

## How it is computed
The rows of `cuda_api`, sorted by time. With a filter, calls that overlap the selected time.

## Traps
- The duration of a call is not CPU work: many calls wait for the GPU.
- One line per call: millions make a long text. Use --filter-time or --filter-nvtx, or SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import during
from warplens.errors import MissingData
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_ROWS = 'SELECT process, thread, "start", "end", name, result, correlation FROM cuda_api WHERE {chosen} ORDER BY "start", id'


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; raises MissingData if no call was recorded."""
    rows = report.sql(_ROWS.format(chosen=during(report, selection)))
    if not rows.num_rows:
        raise MissingData(f"does not contain CUDA trace data{selection.place(report)}.")
    return pa.table(
        {
            "Start (ns)": pc.subtract(rows.column("start"), report.origin),
            "Duration (ns)": pc.subtract(rows.column("end"), rows.column("start")),
            "Name": rows.column("name"),
            "Result": rows.column("result"),
            "CorrID": rows.column("correlation"),
            "Pid": system_ids(report, rows, "processes", column="pid"),
            "Tid": system_ids(report, rows, "threads", column="tid"),
            "T-Pri": pa.nulls(rows.num_rows, pa.int32()),
            "Thread Name": system_ids(report, rows, "threads", column="name"),
        }
    )
