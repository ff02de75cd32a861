"""NCCL Trace.

## What it shows
Every NCCL call, in order of start, with its size, reduction and ranks.

## Columns
- Start (ns): time since the start of the report. Duration (ns): of the call on the host.
- Name: the function, e.g. `ncclAllReduce`. Bytes: size of the message, as NCCL reports it.
- Operation: the reduction, e.g. `Sum`. Root, Peer: rank that sends or gathers, rank at the other
  end.
- Communicator: NCCL's number of it. Rank, Ranks: number of this rank in it, and number of ranks.
  Device: CUDA's number of the GPU.
- PID, TID: process and thread of the caller.

## How it is computed
From the ranges that NCCL itself writes into the NVTX domain `NCCL`, and their payloads. Rank, Ranks
and Device come from the creation of the communicator. With a filter, calls that overlap the
selected time.

## Traps
- A call puts work into a stream and returns: its time is not that of the transfer.
  nvtx_gpu_proj_trace shows its GPU time.
- Between ncclGroupStart and ncclGroupEnd, calls are only queued; ncclGroupEnd launches them.
- Communicators that were created before the recording began have no Rank and Ranks.
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
    """Return the trace; raises MissingData if NCCL was not recorded."""
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
