"""Communication, Copies and Compute Overlap.

## What it shows
How much of the communication and of the copies ran beside computing kernels, and how much of them kept the GPU from computing.

## Columns
- Overlap (%): Hidden, of Total.
- Total (ns): time in which any of it ran. Hidden (ns): of that, time in which a kernel computed as well. Exposed (ns): the rest.
- Blocking (ns): of Exposed, the time in which nothing else at all ran on the GPU.
- Host, Rank, PID, Device, Stream: which GPU or stream; each only where the rows differ in it, Stream with `:by=stream`.
- What: `communication` (kernels of NCCL, RCCL, NVSHMEM, …, by name) or `memory` (copies, memsets, migrations).

## How it is computed
Unions: time counts once, however many operations run. `:by=stream` looks at what one stream does of it, beside everything that the GPU
does. `:by=process` and `:by=rank` add up the time of their GPUs.

## Traps
- Exposed is not lost: it may be what the algorithm needs. No overlap of communication with compute can win more than it.
- Kernels of communication wait for other ranks: a late rank makes long, exposed communication on all others.
- A kernel that is hidden takes multiprocessors and bandwidth from the one that hides it.
- Graphs that were recorded as a whole count as compute, whatever is in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.gpu.time import GpuOverlap, overlaps
from warplens.analysis.gpu.work import COMMUNICATION, MEMORY, gpus
from warplens.errors import MissingData
from warplens.stats.by import By, Key, percent

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name
_WHAT = {COMMUNICATION: "communication", MEMORY: "memory"}


def table(report: Report, selection: Selection, *, by: str = "device") -> pa.Table:
    """Return the overlap; MissingData where nothing was communicated or copied.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, `stream`, `process` or `rank`: column that divides the rows.
    """
    apart = By.of(report, by)
    groups: dict[tuple[Key, str], list[GpuOverlap]] = {}
    for gpu in gpus(report, selection):
        for stream, role, overlap in overlaps(gpu, per_stream=apart.per_stream):
            groups.setdefault((apart.key(gpu.process, gpu.device, stream), _WHAT[role]), []).append(overlap)
    if not groups:
        raise MissingData(f"does not contain CUDA communication or GPU memory data{selection.place(report)}.")
    rows = [
        GpuOverlap(*(sum(values) for values in zip(*members, strict=True))) for members in groups.values()
    ]
    times = {"Total": "total", "Hidden": "hidden", "Exposed": "exposed", "Blocking": "alone"}
    return pa.table(
        {
            "Overlap (%)": percent([row.hidden for row in rows], [row.total for row in rows]),
            **{
                f"{name} (ns)": pa.array([getattr(row, field) for row in rows], pa.int64())
                for name, field in times.items()
            },
            **apart.columns([key for key, _ in groups]),
            "What": pa.array([what for _, what in groups]),
        }
    )
