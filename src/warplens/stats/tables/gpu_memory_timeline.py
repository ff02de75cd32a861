"""GPU Memory Timeline.

## What it shows
Memory of each GPU over the run: allocated from CUDA, reserved by the framework's allocator, and
used by tensors. With `:peak`: the owners of the memory at its peak, by NVTX range or operation.

## Columns
- Start (ns): time since the start of the report. Duration (ns): length of the stretch of time.
- CUDA (MB): the largest amount that the process had from CUDA during the stretch, in 10^6 bytes,
  without host memory.
- Tensors (MB), Reserved (MB): memory of tensors and of the framework's allocator; each only if it
  was recorded.
- With `:peak`: Memory (%), Memory (MB), Allocations, Kind (`CUDA` or `tensors`), Peak At (ns), and
  Range: the innermost range or operation around the allocation, `domain:name`.
- Rank, PID, Device: each is shown only if rows differ in it.

## How it is computed
From `gpu_memory` and `tensor_memory`, whose rows hold the total after them. If they do not, the
rows are summed from the first one. The selected time is divided into `:bins=50` equal stretches.
Each shows the largest total from its start to its end. At the peak, an address counts if its last
event was an allocation.

## Traps
- If totals were not recorded, memory from before the recording is missing.
- Tensors use less than is reserved: the rest waits for reuse, or is fragmented into pieces that are
  too small.
- `[before the recording]`: memory at the peak that was allocated before the first row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.memory_levels import SERIES, MemoryLevel, held, levels
from warplens.errors import MissingData, UsageError
from warplens.stats.base import noted
from warplens.stats.places import places
from warplens.stats.sums import MEGABYTE

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, bins: int = 50, peak: bool = False) -> pa.Table:
    """Return the timeline, or the owners of the peak; raises MissingData if no memory was recorded.

    Args:
        report: the report.
        selection: the part to use.
        bins: number of equal stretches of time.
        peak: print the owners of the memory at its peak.
    """
    if bins < 1:
        raise UsageError(f"`:bins={bins}` is not a number of bins; use 1 or more.")
    begin, end = selection.window(report) or report.span
    recorded = [level for level in levels(report) if level.time[0] < end]
    if not recorded:
        raise MissingData(
            f"does not contain GPU memory data{selection.place(report)}; record with --cuda-memory-usage=true."
        )
    return (
        _peaks(report, recorded, begin=begin, end=end)
        if peak
        else _timeline(report, recorded, begin=begin, end=end, bins=bins)
    )


def _timeline(report: Report, recorded: list[MemoryLevel], begin: int, end: int, bins: int) -> pa.Table:
    edges = (
        np.unique(np.linspace(begin, end, bins + 1).astype(np.int64))
        if end > begin
        else np.array([begin, begin + 1], np.int64)
    )
    first, last = edges[:-1], edges[1:]
    series = [name for name in SERIES if any(level.series == name for level in recorded)]
    parts = []
    for process, device in dict.fromkeys((level.process, level.device) for level in recorded):
        own = {
            level.series: level for level in recorded if (level.process, level.device) == (process, device)
        }
        values = {
            f"{name[0].upper()}{name[1:]} (MB)": pa.array(own[name].highest(first, last) / MEGABYTE)
            if name in own
            else pa.nulls(len(first), pa.float64())
            for name in series
        }
        keys = {"process": pa.array(np.full(len(first), process)), "device": _devices([device] * len(first))}
        parts.append(
            pa.table({"Start (ns)": first - report.origin, "Duration (ns)": last - first, **values, **keys})
        )
    rows = pa.concat_tables(parts).sort_by(
        [("Start (ns)", "ascending"), ("process", "ascending"), ("device", "ascending")]
    )
    where = places(report, rows.column("process"), rows.column("device"))
    columns = {name: rows.column(name) for name in rows.column_names if name not in ("process", "device")}
    return noted(pa.table({**columns, **where}), *_notes(report, recorded, begin=begin, end=end))


def _notes(report: Report, recorded: list[MemoryLevel], begin: int, end: int) -> list[str]:
    texts = []
    for level in recorded:
        at, most = level.peak(begin, end)
        place = "" if level.device < 0 else f" on GPU {level.device}"
        texts.append(
            f"{level.series}: at most {most / MEGABYTE:,.1f} MB{place}, at {at - report.origin:,} ns; `:peak` has who held it."
        )
    return texts[:6]


def _peaks(report: Report, recorded: list[MemoryLevel], begin: int, end: int) -> pa.Table:
    rows = []
    for level in (level for level in recorded if level.series != "reserved"):
        at, most = level.peak(begin, end)
        known = held(report, level, at).to_pylist()
        missing = most - sum(row["bytes"] for row in known)
        more = (
            [{"range": "[before the recording]", "bytes": missing, "allocations": None}]
            if missing > 0
            else []
        )
        rows += [
            {
                "Memory (%)": 100 * row["bytes"] / (most or 1),
                "Memory (MB)": row["bytes"] / MEGABYTE,
                "Allocations": row["allocations"],
                "Kind": level.series,
                "Peak At (ns)": at - report.origin,
                "process": level.process,
                "device": level.device,
                "Range": row["range"] or "[no range]",
            }
            for row in sorted(known + more, key=lambda row: -row["bytes"])
        ]
    kinds = {
        "Memory (%)": pa.float64(),
        "Memory (MB)": pa.float64(),
        "Kind": pa.string(),
        "Range": pa.string(),
    }
    names = ("Memory (%)", "Memory (MB)", "Allocations", "Kind", "Peak At (ns)", "process", "device", "Range")
    table = pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.int64())) for name in names]))
    columns = {name: table.column(name) for name in names if name not in ("process", "device", "Range")}
    devices = _devices(table.column("device").to_pylist())
    return pa.table(
        {
            **columns,
            **places(report, table.column("process"), pa.chunked_array([devices])),
            "Range": table.column("Range"),
        }
    )


def _devices(numbers: list[int]) -> pa.Array:
    return pa.array([None if number < 0 else number for number in numbers], pa.int32())
