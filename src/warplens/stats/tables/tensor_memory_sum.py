"""Tensor Memory Summary.

## What it shows
How much memory tensors had at most, when, and at the end: one row per process and device, the CPU among them. With `:by=range`: which
operations or NVTX ranges took it. With `:by=stack`: which code holds it at the peak, and which code leaves it behind.

## Columns
- Peak (MB): the most that tensors had at once, in 10^6 bytes. Peak At (ns): when, from the begin of the report.
- End (MB): what they had after the last row.
- Allocations, Frees: how many. Allocated (MB): all allocations together. Largest (MB): the largest one.
- With `:by=stack` At Peak (MB): what was held at the highest point. Left (MB): what was never freed. Steps: in how many training steps
  such an allocation was made; code that leaves memory in each step leaks. Stack: functions with their lines, the innermost first.
- Device: `CPU`, or the kind and the number of the device; with `:by=range` Range, `domain:name`, the innermost one around the allocation.
- Host, Rank, PID: of the process; each only where the rows differ in it.

## How it is computed
From the rows of `tensor_memory`: a framework's own record of what it gave to tensors and took back, such as PyTorch's profiler writes it
with `profile_memory=True`, and its memory snapshots, which alone have stacks. Rows hold the total after them; if they do not, it is
added up from the first row. With a filter or --window, the rows in the selected time. With `:by=range` Peak and End are left out: memory
is often freed by another operation.

## Traps
- What was taken before the recording began is in Peak only where the framework told its totals.
- Tensors are given memory by an allocator that keeps more: gpu_memory_sum is what CUDA gave it.
- End is no leak: it is what was alive when the recording stopped, weights and gradients among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.holders import BEFORE, DEVICE, HELD, holders
from warplens.analysis.gpu.ops import at
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
    """Return the summary; MissingData where no framework recorded the memory of its tensors.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`; `range`: what was allocated in which operation; `stack`: the code that holds it.
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
