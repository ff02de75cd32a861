"""GPU Utilization and Idle Time by Cause.

## What it shows
For how long each GPU did anything at all, and why it did nothing in the rest of the time.

## Columns
- Time (%): of the time that was looked at: the selected part, or the whole recording. The rows of a GPU add up to 100.
- Total Time (ns), Count, Avg, Max (ns): of the stretches in which it was busy without a gap, or idle for one cause.
- Host, Rank, PID, Device, Stream: which GPU or stream; each only where the rows differ in it, Stream with `:by=stream`.
- State: `busy`, or why it was idle:
  - `host-bound`: the host had not yet launched what came next: its thread did something else.
  - `sync-bound`: the thread that launched it was in a call that waits for the GPU, or came late because of one: the time after that call
    counts as well, up to what it had waited before the gap, and up to 1 ms.
  - `launch-bound`: launched and not yet begun: the call itself, and what driver and GPU need.
  - `copy-bound`: it waited for a copy on another stream, or the host staged a copy of pageable memory.
  - `collective wait`: it waited for a communication kernel on another stream.
  - `dependency`: it waited for other work on another stream.
  - `head`, `tail`: before the first and after the last operation.
  - `earlier work`: the first operation waited for work that was launched before the recording began.
  - `unknown`: its call was not recorded, or something the report does not show held it for more than 50 µs.

## How it is computed
Busy is the union of kernels, copies, memsets, graphs and migrations: what overlaps counts once. Each gap is parted by the call that
launched the operation that ended it: before it the host was late, from it on the operation waited; the guide has the definitions in full.
The rows of a GPU add up to its time exactly. `:by=process` and `:by=rank` add up the time of their GPUs.

## Traps
- Busy is not well used: one small kernel, or one that waits for other GPUs, makes a GPU busy. gpu_metrics_sum says more, kernel_breakdown
  what ran.
- A GPU whose streams wait for one another is busy: `copy-bound`, `collective wait` and `dependency` show with `:by=stream`.
- Idle time at the end of a recording may be that of the program's own end: look at it with --filter-time or --filter-nvtx.
- Recorded events show which work a stream waited for; without them, the work that ended within 10 µs before it went on.
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
    """Return the summary; MissingData where no GPU did anything.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, `stream`, `process` or `rank`: column that divides the rows.
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
