"""Temporal Breakdown of GPU Time.

## What it shows
Time of each GPU from its first to its last operation, divided into compute, communication, copies
and idle time.

## Columns
- Compute, Communication, Memory, Idle (%) and (ns): parts that do not overlap and add up to Span.
- Span (ns): from the first to the last operation on the GPU in the selected part.
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.

## How it is computed
As unions, by precedence. Compute: time in which a kernel other than communication, or a graph that
was recorded as a whole, ran. Communication: the remaining time in which a communication kernel ran
(NCCL, RCCL, NVSHMEM, …, by name); it is exposed. Memory: the remaining time with copies, memsets or
migrations. `:by=process` and `:by=rank` add up the times of their GPUs.

## Traps
- Communication is the part that compute did not hide; comm_comp_overlap shows all of it.
- A kernel that waits for other GPUs counts as communication while it waits: a slow rank appears as
  communication of the others.
- Holistic Trace Analysis reports the same compute and idle time. Its non-compute time is
  Communication + Memory here. It recognises communication only by `nccl` in the name: custom
  all-reduce kernels are compute there.
- Time before the first and after the last operation is not included; gpu_utilization has it as head
  and tail.
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
    """Return the breakdown; raises MissingData if no GPU did anything.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `stream`, `process` or `rank`: one row for each.
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
