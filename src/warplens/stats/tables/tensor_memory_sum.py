"""Tensor Memory Summary.

## What it shows
Memory of tensors: the peak, its time, and the amount at the end; one row per process and device,
including the CPU. `:by=range` shows the operations or NVTX ranges that allocated it,
`:by=stack` the code that holds it at the peak, and the code that leaves it behind.

## Columns
- Peak (MB): most tensor memory at once, in 10^6 bytes. Peak At (ns): when, since the start of the
  report.
- End (MB): amount after the last row.
- Allocations, Frees: number of each. Allocated (MB): sum of all allocations. Largest (MB): the
  largest single one.
- With `:by=stack` At Peak (MB): memory held at the highest point. Left (MB): memory that was never
  freed. Steps: number of training steps in which such memory was allocated; code that leaves memory
  in each step leaks. Stack: functions with their lines, the innermost first.
- Device: `CPU`, or kind and number of the device. With `:by=range` Range instead: the innermost one
  around the allocation, `domain:name`.
- Host, Rank, PID: the process. Each is shown only if rows differ in it.

## How it is computed
From the rows of `tensor_memory`: a framework's own record of allocated and freed tensors, such as
PyTorch's profiler writes with `profile_memory=True`, or a memory snapshot of PyTorch, which alone
has stacks. Rows hold the total after them. If they do not, the rows are summed from the first one.
With a filter or --window, the rows in the selected time. With `:by=range`, Peak and End are left
out, because another operation often frees the memory.

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
from warplens.analysis.steps.holders import BEFORE, DEVICE, HELD, holders
from warplens.errors import MissingData
from warplens.stats.base import noted, one_of
from warplens.stats.places import places
from warplens.stats.sums import megabytes

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_SUMS = """count(*) FILTER (m.bytes > 0) AS allocations, count(*) FILTER (m.bytes < 0) AS frees,
  coalesce(sum(m.bytes) FILTER (m.bytes > 0), 0)::BIGINT AS allocated, max(m.bytes) FILTER (m.bytes > 0) AS largest"""
_DEVICES = f"""WITH {HELD}
SELECT process, {DEVICE} AS name, max(held) AS peak,
       min_by("start", (-held, "start")) AS peak_at, max_by(held, ("start", id)) AS last, {_SUMS}
FROM held m WHERE {{inside}} GROUP BY process, name ORDER BY process, peak DESC, name"""
_NUMBERS = ("process", "at_peak", "left", "steps", "allocations", "allocated")
_FRAMES_SHOWN = 4
_FRAMES = """WITH RECURSIVE up AS (
  SELECT frame, parent, 0 AS place FROM frames WHERE frame = $stack
  UNION ALL SELECT f.frame, f.parent, place + 1 FROM frames f JOIN up ON f.frame = up.parent WHERE place < 64)
SELECT kind, "function", module, file, line FROM up JOIN frames USING (frame) ORDER BY place"""
_NO_STACKS = (
    "No stacks were recorded: memory snapshots of PyTorch have them (torch.cuda.memory._dump_snapshot)."
)
_NAME = "CASE WHEN r.id IS NULL THEN '[no range]' ELSE coalesce(r.domain, '') || ':' || coalesce(r.message, '') END"
_RANGES = f"""SELECT m.process, {_NAME} AS name, {_SUMS}
FROM (SELECT * FROM tensor_memory WHERE {{inside}}) m LEFT JOIN nvtx_ranges r ON m.range = r.id
GROUP BY m.process, name HAVING allocations > 0 ORDER BY allocated DESC, name"""


def table(report: Report, selection: Selection, *, by: str = "device") -> pa.Table:
    """Return the summary; raises MissingData if no framework recorded the memory of its tensors.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`; `range`: allocations of each operation or range; `stack`: the code that holds memory.
    """
    one_of("by", by, ("device", "range", "stack"))
    if not report.tables["tensor_memory"]:
        raise MissingData(f"does not contain tensor memory data{selection.place(report)}.")
    if by == "stack":
        return _by_stack(report, selection)
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


def _by_stack(report: Report, selection: Selection) -> pa.Table:
    rows = sorted(holders(report, selection), key=lambda row: (-row["at_peak"], -row["left"], row["stack"]))
    if not rows:
        raise MissingData(f"does not contain tensor memory data{selection.place(report)}.")
    known = any(row["stack"] >= 0 for row in rows)
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in _NUMBERS}
    device = pa.array([row["device"] for row in rows])
    told = {"Steps": columns["steps"]} if columns["steps"].null_count < len(rows) else {}
    result = pa.table(
        {
            "At Peak (MB)": megabytes(columns["at_peak"]),
            "Left (MB)": megabytes(columns["left"]),
            **told,
            "Allocations": columns["allocations"],
            "Allocated (MB)": megabytes(columns["allocated"]),
            **places(report, pa.chunked_array([columns["process"]])),
            **({"Device": device} if len(pc.unique(device)) > 1 else {}),
            "Stack": pa.array([_text(report, row["stack"]) for row in rows]),
        }
    )
    return noted(result, "" if known else _NO_STACKS)


def _text(report: Report, stack: int) -> str:
    """Return a stack's innermost functions of Python, or of native code if there are none."""
    if stack < 0:
        return "[before the recording]" if stack == BEFORE else "[no stack]"
    rows = report.sql(_FRAMES, {"stack": stack}).to_pylist()
    rows = [row for row in rows if row["kind"] == "python"] or rows
    shown = [f"{row['function']} ({_place(row)})" for row in rows[:_FRAMES_SHOWN]]
    return " < ".join([*shown, *(["…"] if len(rows) > _FRAMES_SHOWN else [])])


def _place(row: dict[str, object]) -> str:
    file = str(row["file"] or row["module"] or "?").rpartition("/")[2]
    return f"{file}:{row['line']}" if row["line"] else file
