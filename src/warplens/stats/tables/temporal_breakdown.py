"""Temporal Breakdown of GPU Time.

## What it shows
What each GPU's time went to, from its first to its last operation: computing, communicating, copying, or nothing.

## Columns
- Compute, Communication, Memory, Idle (%) and (ns): parts that do not overlap and add up to Span.
- Span (ns): from the first to the last operation on the GPU in the selected part.
- Host, Rank, PID, Device, Stream: which GPU or stream; each only where the rows differ in it, Stream with `:by=stream`.

## How it is computed
Unions, by precedence. Compute: time in which a kernel that is not communication, or a graph that was recorded as a whole, ran, whatever ran
beside it. Communication: the rest of the time in which a communication kernel ran (NCCL, RCCL, NVSHMEM, …, by name): it is
exposed. Memory: the rest of the time in which something was copied, set or migrated. `:by=process` and `:by=rank` add up the time of
their GPUs.

## Traps
- Communication is what compute did not hide; comm_comp_overlap has all of it.
- A kernel that waits for other GPUs communicates as long as it waits: a slow rank shows as the communication of the others.
- Compared with Holistic Trace Analysis: its compute and idle time are the same, its non-compute time is Communication + Memory here. It
  knows communication by names with `nccl` alone: custom all-reduce kernels are compute there.
- The time before the first and after the last operation is not in it; gpu_utilization has that as head and tail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.gpu.time import Parted, parted
from warplens.analysis.gpu.work import gpus
from warplens.errors import MissingData
from warplens.stats.by import By, Key, percent

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name
_PARTS = ("compute", "communication", "memory", "idle")


def table(report: Report, selection: Selection, *, by: str = "device") -> pa.Table:
    """Return the breakdown; MissingData where no GPU did anything.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, `stream`, `process` or `rank`: column that divides the rows.
    """
    apart = By.of(report, by)
    groups: dict[Key, list[Parted]] = {}
    for gpu in gpus(report, selection):
        tracks = gpu.streams.items() if apart.per_stream else [(None, gpu.merged())]
        for stream, track in tracks:
            groups.setdefault(apart.key(gpu.process, gpu.device, stream), []).append(parted(track))
    if not groups:
        raise MissingData(f"does not contain CUDA kernel or GPU memory data{selection.place(report)}.")
    sums = [Parted(*(sum(values) for values in zip(*members, strict=True))) for members in groups.values()]
    columns = {
        f"{name.capitalize()} (%)": percent([getattr(row, name) for row in sums], [row.span for row in sums])
        for name in _PARTS
    }
    times = {
        f"{name.capitalize()} (ns)": pa.array([getattr(row, name) for row in sums], pa.int64())
        for name in (*_PARTS, "span")
    }
    return pa.table({**columns, **times, **apart.columns(list(groups))})
