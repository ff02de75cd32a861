"""GPU Utilization and Idle Time by Cause.

## What it shows
How long each GPU was busy, and why it was idle for the rest of the time.

## Columns
- Time (%): share of the selected part, or of the whole recording. The rows of a GPU add up to 100.
- Total Time (ns), Count, Avg, Max (ns): of the stretches in which the GPU was busy without a gap,
  or idle for one cause.
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.
- State: `busy`, or the cause of idle time:
  - `host-bound`: the host had not yet launched the next operation; its thread did something else.
  - `sync-bound`: the launching thread was in a call that waits for the GPU, or was late because of
    one. Time after that call counts too, at most as much as it had waited before the gap, and at
    most 1 ms.
  - `launch-bound`: launched but not yet begun: the call itself, and the latency of driver and GPU.
  - `copy-bound`: the operation waited for a copy on another stream, or the host staged a copy of
    pageable memory.
  - `collective wait`: it waited for a communication kernel on another stream.
  - `dependency`: it waited for other work on another stream.
  - `head`, `tail`: before the first and after the last operation.
  - `earlier work`: the first operation waited for work that was launched before the recording
    began.
  - `unknown`: its call was not recorded, or something that the report does not show delayed it by
    more than 50 us.

## How it is computed
Busy time is the union of kernels, copies, memsets, graphs and migrations: overlapping operations
count once. Each gap is divided at the call that launched the operation that ended the gap: before
the call the host was late, after it the operation waited. The guide has the full definitions. The
rows of a GPU add up to its time exactly. `:by=process` and `:by=rank` add up the times of their
GPUs.

## Traps
- Busy does not mean well used: one small kernel, or a kernel that waits for other GPUs, makes a GPU
  busy. gpu_metrics_sum and kernel_breakdown show more.
- A GPU whose streams wait for one another is busy: `copy-bound`, `collective wait` and `dependency`
  appear with `:by=stream`.
- Idle time at the end of a recording may come from the end of the program: exclude it with
  --filter-time or --filter-nvtx.
- If CUDA events were recorded, they show which work a stream waited for. Otherwise it is the work
  that ended within 10 us before the stream continued.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.time import Spent, spent
from warplens.errors import MissingData
from warplens.stats.base import noted
from warplens.stats.by import By, Key, percent

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
_BUSY = "busy"


def table(report: Report, selection: Selection, *, by: str = "device") -> pa.Table:
    """Return the summary; raises MissingData if no GPU did anything.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `stream`, `process` or `rank`: one row for each.
    """
    apart = By.of(report, by)
    gpus_spent = spent(report, selection, "stream" if apart.per_stream else "device")
    if not gpus_spent:
        raise MissingData(f"does not contain CUDA kernel or GPU memory data{selection.place(report)}.")
    groups: dict[Key, list[Spent]] = {}
    for member in gpus_spent:
        groups.setdefault(apart.key(*member.seen[:3]), []).append(member)
    rows: list[tuple[Key, str, int, int, int, int]] = []
    for key, members in groups.items():
        states = [
            (
                _BUSY,
                sum(member.busy for member in members),
                sum(member.seen.stretches for member in members),
                max(member.seen.longest for member in members),
            )
        ]
        for cause in members[0].idle:
            number, longest = (
                sum(member.pieces[cause] for member in members),
                max(member.longest[cause] for member in members),
            )
            states += (
                [(cause, sum(member.idle[cause] for member in members), number, longest)] if number else []
            )
        time = sum(member.span for member in members)
        rows += [
            (key, *state, time) for state in [states[0], *sorted(states[1:], key=lambda state: -state[1])]
        ]
    keys, state, total, count, most, whole = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "Time (%)": percent(total, whole),
        "Total Time (ns)": pa.array(total, pa.int64()),
        "Count": pa.array(count, pa.int64()),
        "Avg (ns)": pc.divide(
            pa.array([float(value) for value in total]), pa.array([float(value) for value in count])
        ),
        "Max (ns)": pa.array(most, pa.int64()),
        **apart.columns(keys),
        "State": pa.array(state),
    }
    unknown = sum(member.idle["unknown"] for member in gpus_spent)
    missing = not report.tables["cuda_api"]
    return noted(
        pa.table(columns),
        "Causes are unknown without the calls of CUDA; record with --trace=cuda."
        if unknown and missing
        else "",
    )
