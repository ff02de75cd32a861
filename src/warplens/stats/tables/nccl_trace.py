"""NCCL Trace.

## What it shows
Every call of NCCL, in the order they began, with what it moved, how, and among how many.

## Columns
- Start (ns): from the begin of the report. Duration (ns): of the call on the host.
- Name: the function, e.g. `ncclAllReduce`. Bytes: the size of the message, as NCCL states it.
- Operation: how values are reduced, e.g. `Sum`. Root, Peer: rank that sends or gathers, rank at the other end.
- Communicator: NCCL's number of it. Rank, Ranks: this one in it, and how many there are. Device: CUDA's number of the GPU.
- PID, TID: of the thread that called.

## How it is computed
From the ranges of the NVTX domain `NCCL`, which the library makes itself, and their payloads. Rank, Ranks and Device are those that NCCL
told when the communicator was made. With a filter, calls that overlap the selected time.

## Traps
- A call puts work into a stream and returns: its time is not that of the transfer. nvtx_gpu_proj_trace shows what the GPU did for it.
- Between ncclGroupStart and ncclGroupEnd calls are only noted; what they launch, ncclGroupEnd launches.
- Communicators that were made before the recording began have no Rank and Ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.nccl import calls
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; MissingData where NCCL was not recorded."""
    rows = calls(report, selection)
    numbers = rows.column("communicator").to_pylist()
    return pa.table(
        {
            "Start (ns)": pc.subtract(rows.column("start"), report.origin),
            "Duration (ns)": pc.subtract(rows.column("end"), rows.column("start")),
            "Name": rows.column("name"),
            "Bytes": rows.column("bytes"),
            "Operation": rows.column("operation"),
            "Root": rows.column("root"),
            "Peer": rows.column("peer"),
            "Communicator": pa.array(
                [None if number is None else f"{number:#x}" for number in numbers], pa.string()
            ),
            "Rank": rows.column("rank"),
            "Ranks": rows.column("ranks"),
            "Device": rows.column("device"),
            "PID": system_ids(report, rows, "processes", column="pid"),
            "TID": system_ids(report, rows, "threads", column="tid"),
        }
    )
