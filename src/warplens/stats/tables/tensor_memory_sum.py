"""Tensor Memory Summary.

## What it shows
Memory of tensors: the peak, its time, and the amount at the end; one row per process and device,
including the CPU. `:by=range` shows the operations or NVTX ranges that allocated it.

## Columns
- Peak (MB): most tensor memory at once, in 10^6 bytes. Peak At (ns): when, since the start of the
  report.
- End (MB): amount after the last row.
- Allocations, Frees: number of each. Allocated (MB): sum of all allocations. Largest (MB): the
  largest single one.
- Device: `CPU`, or kind and number of the device. With `:by=range` Range instead: the innermost one
  around the allocation, `domain:name`.
- Host, Rank, PID: the process. Each is shown only if rows differ in it.

## How it is computed
From the rows of `tensor_memory`: a framework's own record of allocated and freed tensors, such as
PyTorch's profiler writes with `profile_memory=True`. Rows hold the total after them. If they do
not, the rows are summed from the first one. With a filter or --window, the rows in the selected
time. With `:by=range`, Peak and End are left out, because another operation often frees the memory.

## Traps
- Memory from before the recording is in Peak only if the framework recorded its totals.
- The framework's allocator keeps more memory than tensors use: gpu_memory_sum shows its memory from
  CUDA.
- End is not a leak: it is the memory of tensors that were alive at the end of the recording,
  including weights and gradients.
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
    """Return the summary; raises MissingData if no framework recorded the memory of its tensors.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, or `range`: allocations of each operation or range.
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
