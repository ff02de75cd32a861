"""CUDA API Trace.

## What it shows
Every call of the CUDA runtime and driver, in the order they began.

## Columns
- Start (ns): from the begin of the report. Duration (ns).
- Name: the function.
- Result: what it returned; 0 is success.
- CorrID: the number by which cuda_gpu_trace knows what it launched; unique in its process.
- Pid, Tid: system ids of process and thread. T-Pri: priority of the thread; empty where it is not known. Thread Name.

## How it is computed
The rows of `cuda_api`, sorted by time. With a filter, calls that overlap the selected time.

## Traps
- The time of a call is not work of the CPU: many calls wait for the GPU.
- One line per call: millions of calls make a long text. Take --filter-time or --filter-nvtx, or SQL.
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
    """Return the trace; MissingData where no call was recorded."""
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
