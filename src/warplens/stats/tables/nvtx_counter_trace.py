"""NVTX Counter Trace.

## What it shows
Every sample of every NVTX counter, in order of time.

## Columns
- Time (ns): time since the start of the report.
- Value: in the counter's unit; empty if the program marked the sample as having none.
- Unit: as the program gave it; only if a counter has one.
- PID, TID: process and thread id of the system, of the thread that took the sample.
- Task: the asyncio or trio task, or generator, that took it; only in reports with tasks.
- Counter: `domain:name`; the default domain is empty. A field of a structured counter is
  `name.field`.

## How it is computed
The rows of `nvtx_counter_samples`, sorted by time. Values are multiplied by the counter's scale;
`zero` prints 0, and `unchanged` is empty. A filter keeps the samples in its time, including its
start.

## Traps
- The value of a `delta` counter is the change since its last sample; nvtx_counter_sum has the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.counters import counter_name, sample_values
from warplens.errors import MissingData
from warplens.report.cutting import overlaps
from warplens.stats.trace_columns import task_column
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; raises MissingData if there is no sample."""
    window = selection.window(report)
    rows = report.table("nvtx_counter_samples")
    if window is not None:
        rows = rows.filter(overlaps(rows, window))
    if not rows.num_rows:
        raise MissingData(f"does not contain NVTX counter data{selection.place(report)}.")
    rows = rows.take(
        pc.sort_indices(rows, [("start", "ascending"), ("process", "ascending"), ("id", "ascending")])
    )
    counters = report.table("nvtx_counters")
    facts = counters.to_pylist()
    places = pc.index_in(
        rows.column("counter"), value_set=counters.column("counter").combine_chunks()
    ).combine_chunks()
    scales = (
        pa.array([float(row["scale"] or 1) for row in facts], pa.float64())
        .take(places)
        .to_numpy(zero_copy_only=False)
    )
    unsigned = pc.fill_null(
        pa.array([row["type"] == "uint64" for row in facts], pa.bool_()).take(places), False
    )
    with np.errstate(over="ignore", invalid="ignore"):  # whatever scale the program gave
        values = sample_values(rows, unsigned.to_numpy(zero_copy_only=False)) * scales
    array = pa.array(values, mask=np.isnan(values))
    if (
        rows.column("value_float").null_count == rows.num_rows
        and (scales == 1).all()
        and not unsigned.true_count
    ):
        zeros = pa.array(np.zeros(len(values), np.int64), mask=values != 0)
        array = pc.coalesce(rows.column("value_int"), zeros)  # floats hold no more than 2^53
    columns = {
        "Time (ns)": pc.subtract(rows.column("start"), report.origin),
        "Value": array,
        "Unit": pa.array([row["unit"] for row in facts], pa.string()).take(places),
        "PID": system_ids(report, rows, "processes", column="pid"),
        "TID": system_ids(report, rows, "threads", column="tid"),
        **task_column(report, rows),
        "Counter": pa.array([counter_name(row) for row in facts], pa.string()).take(places),
    }
    if columns["Unit"].null_count == rows.num_rows:
        del columns["Unit"]
    return pa.table(columns)
