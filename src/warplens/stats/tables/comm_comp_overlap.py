"""Communication, Copies and Compute Overlap.

## What it shows
How much communication and copying ran at the same time as computing kernels, and how much kept the
GPU from computing.

## Columns
- Overlap (%): Hidden as a share of Total.
- Total (ns): time in which at least one such operation ran.
- Hidden (ns): the part of Total in which a kernel computed as well. Exposed (ns): the rest of
  Total.
- Blocking (ns): the part of Exposed in which nothing else at all ran on the GPU.
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.
- What: `communication` (kernels of NCCL, RCCL, NVSHMEM, …, by name) or `memory` (copies, memsets,
  migrations).

## How it is computed
As unions: a moment counts once, however many operations run. `:by=stream` compares the operations
of one stream with all work of the GPU. `:by=process` and `:by=rank` add up the times of their GPUs.

## Traps
- Exposed time is not necessarily lost: the algorithm may need the data first. It is the most that
  better overlap can save.
- Communication kernels wait for other ranks: one late rank makes exposed communication long on all
  others.
- A hidden kernel takes multiprocessors and bandwidth from the kernel that hides it.
- A graph that was recorded as a whole counts as compute, whatever it contains.
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
    """Return the overlap; raises MissingData if nothing was communicated or copied.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `stream`, `process` or `rank`: one row for each.
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
