"""Tensor Memory Summary.

## What it shows
How much memory tensors had at most, when, and at the end: one row per process and device, the CPU among them. With `:by=range`: which
operations or NVTX ranges took it.

## Columns
- Peak (MB): the most that tensors had at once, in 10^6 bytes. Peak At (ns): when, from the begin of the report.
- End (MB): what they had after the last row.
- Allocations, Frees: how many. Allocated (MB): all allocations together. Largest (MB): the largest one.
- Device: `CPU`, or the kind and the number of the device; with `:by=range` Range, `domain:name`, the innermost one around the allocation.
- Host, Rank, PID: of the process; each only where the rows differ in it.

## How it is computed
From the rows of `tensor_memory`: a framework's own record of what it gave to tensors and took back, such as PyTorch's profiler writes it
with `profile_memory=True`. Rows hold the total after them; if they do not, it is added up from the first row. With a filter or
--window, the rows in the selected time. With `:by=range` Peak and End are left out: memory is often freed by another operation.

## Traps
- What was taken before the recording began is in Peak only where the framework told its totals.
- Tensors are given memory by an allocator that keeps more: gpu_memory_sum is what CUDA gave it.
- End is no leak: it is what was alive when the recording stopped, weights and gradients among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import at
from warplens.errors import MissingData
from warplens.stats.base import one_of
from warplens.stats.places import places
from warplens.stats.sums import megabytes

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# The allocator's own total if it was recorded, else a running sum of what was taken and released.
_HELD = """
held AS (
  SELECT *, coalesce(allocated, sum(bytes) OVER (PARTITION BY process, device_type, device ORDER BY "start", id))::BIGINT AS held
  FROM tensor_memory
)"""
_SUMS = """count(*) FILTER (m.bytes > 0) AS allocations, count(*) FILTER (m.bytes < 0) AS frees,
  coalesce(sum(m.bytes) FILTER (m.bytes > 0), 0)::BIGINT AS allocated, max(m.bytes) FILTER (m.bytes > 0) AS largest"""
_DEVICES = f"""WITH {_HELD}
SELECT process, coalesce(device_type, '?') || coalesce(' ' || device, '') AS name, max(held) AS peak,
       min_by("start", (-held, "start")) AS peak_at, max_by(held, ("start", id)) AS last, {_SUMS}
FROM held m WHERE {{inside}} GROUP BY process, name ORDER BY process, peak DESC, name"""
_NAME = "CASE WHEN r.id IS NULL THEN '[no range]' ELSE coalesce(r.domain, '') || ':' || coalesce(r.message, '') END"
_RANGES = f"""SELECT m.process, {_NAME} AS name, {_SUMS}
FROM (SELECT * FROM tensor_memory WHERE {{inside}}) m LEFT JOIN nvtx_ranges r ON m.range = r.id
GROUP BY m.process, name HAVING allocations > 0 ORDER BY allocated DESC, name"""


def table(report: Report, selection: Selection, *, by: str = "device") -> pa.Table:
    """Return the summary; MissingData where no framework recorded the memory of its tensors.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, or `range`: what was allocated in which operation.
    """
    one_of("by", by, ("device", "range"))
    if not report.tables["tensor_memory"]:
        raise MissingData(f"does not contain tensor memory data{selection.place(report)}.")
    query = _DEVICES if by == "device" else _RANGES
    rows = report.sql(query.format(inside=at(report, selection)))
    if not rows.num_rows:
        raise MissingData(f"does not contain tensor memory data{selection.place(report)}.")
    columns = {}
    if by == "device":
        columns = {
            "Peak (MB)": megabytes(rows["peak"]),
            "Peak At (ns)": pc.subtract(rows["peak_at"], report.origin),
            "End (MB)": megabytes(rows["last"]),
        }
    return pa.table(
        {
            **columns,
            "Allocations": rows["allocations"],
            "Frees": rows["frees"],
            "Allocated (MB)": megabytes(rows["allocated"]),
            "Largest (MB)": megabytes(rows["largest"]),
            **places(report, rows["process"]),
            "Device" if by == "device" else "Range": rows["name"],
        }
    )
