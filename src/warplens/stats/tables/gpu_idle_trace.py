"""GPU Idle Trace.

## What it shows
Every stretch of time in which a GPU was idle, in order of time, with its cause: the rows of
gpu_utilization one by one.

## Columns
- Start (ns): time since the start of the report. Duration (ns): of this stretch. Gap (ns): of the
  whole gap, which may have several causes.
- Cause: as in gpu_utilization.
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.
- TID, Thread: the thread that launched the operation that ended the gap. CorrId, Call: its call;
  look the number up in cuda_api_trace, and the operation in cuda_gpu_trace.

## How it is computed
As gpu_utilization. `:longer-than=20000` leaves out gaps of at most 20,000 ns.

## Traps
- There may be as many rows as kernels: use `:longer-than` or --filter-time.
- The call that ended a gap did not fill it: check what its thread did before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.api_calls import called
from warplens.analysis.gpu.idle import idle
from warplens.errors import MissingData, UsageError
from warplens.stats.base import one_of
from warplens.stats.by import By
from warplens.stats.places import of_threads

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, by: str = "device", longer_than: int = 0) -> pa.Table:
    """Return the stretches; raises MissingData if no GPU did anything, or none was idle for so long.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`: nothing ran on any stream; `stream`: each stream by itself.
        longer_than: ns; leave out gaps of at most this length.
    """
    apart = By.of(report, one_of("by", by, BY))
    if longer_than < 0:
        raise UsageError(f"`:longer-than={longer_than}` is not a time in ns.")
    rows = idle(report, selection, per="stream" if apart.per_stream else "device", longer_than=longer_than)
    if not rows.num_rows:
        raise MissingData(
            f"does not contain CUDA kernel or GPU memory data with gaps{selection.place(report)}."
        )
    rows = rows.sort_by([(name, "ascending") for name in ("start", "process", "device", "stream")])
    duration = pc.subtract(rows.column("end"), rows.column("start"))
    gap, where = np.unique(rows.column("gap").to_numpy(), return_inverse=True)
    whole = np.zeros(len(gap), np.int64)
    np.add.at(whole, where, duration.to_numpy())
    keys = list(
        zip(*(rows.column(name).to_pylist() for name in ("process", "device", "stream")), strict=True)
    )
    who = of_threads(report, rows.column("process"), rows.column("thread"))
    calls = called(report, rows.column("api"))
    return pa.table(
        {
            "Start (ns)": pc.subtract(rows.column("start"), report.origin),
            "Duration (ns)": duration,
            "Gap (ns)": pa.array(whole[where]),
            "Cause": rows.column("cause").cast(pa.string()),
            **apart.columns(keys),
            "TID": who["TID"],
            "Thread": who["Thread"],
            "CorrId": calls.column("correlation"),
            "Call": calls.column("name"),
        }
    )
