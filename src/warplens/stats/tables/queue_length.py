"""Launch Queue Length.

## What it shows
Number of launches that wait in each stream, and the time in which calls waited because the queue
was full.

## Columns
- Max, Avg, Med: number of waiting launches; Avg and Med over the Span.
- Empty (%): share of the Span in which no launch waited. Span (ns): from the first call to the last
  start of an operation. Launches: number of launches.
- Full (ns): time in which the queue was at its limit. Blocked (ns), Blocked Calls: time in calls
  that came when it was full, and their number.
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.

## How it is computed
A launch is in the queue from the start of its call to the start of its operation: kernels, copies,
memsets, graphs (as one). A stream of CUDA holds about 1024 launches before a call has to wait;
`:limit=…` sets another number. For a GPU, process or rank, the queues of all its streams are
combined. Full and Blocked are per stream, added up.

## Traps
- A short queue is harmless if the GPU is busy. If the queue is empty and the GPU idle, the host is
  late: gpu_utilization shows the cause.
- A full queue costs nothing: the host is far ahead. It delays work that needs the host's next step,
  and makes calls look slow.
- Operations without a recorded call do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.gpu.api_calls import ApiCalls
from warplens.analysis.gpu.launch_queue import launched, queue
from warplens.analysis.gpu.work import gpus
from warplens.errors import UsageError
from warplens.stats.by import By, percent
from warplens.stats.launches import nothing_launched

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, by: str = "stream", limit: int = 1024) -> pa.Table:
    """Return the lengths; raises MissingData if no operation has its call.

    Args:
        report: the report.
        selection: the part to use.
        by: `stream`, `device`, `process` or `rank`: one row for each.
        limit: number of launches that fill the queue of a stream.
    """
    if limit < 1:
        raise UsageError(f"`:limit={limit}` is not a length of a queue; use 1 or more.")
    apart, calls = By.of(report, by), ApiCalls(report)
    queues = apart.grouped(
        ((gpu.process, gpu.device, stream), part)
        for gpu in gpus(report, selection, classes=False)
        for stream, part in launched(gpu, calls)
    )
    summed = {key: queue(parts, limit) for key, parts in queues}
    if not summed:
        raise nothing_launched(report, selection)
    rows = list(summed.values())
    return pa.table(
        {
            "Max": pa.array([row.most for row in rows], pa.int64()),
            "Avg": pa.array([row.mean for row in rows], pa.float64()),
            "Med": pa.array([row.median for row in rows], pa.int64()),
            "Empty (%)": percent([row.empty for row in rows], [row.span for row in rows]),
            "Span (ns)": pa.array([row.span for row in rows], pa.int64()),
            "Launches": pa.array([row.launches for row in rows], pa.int64()),
            "Full (ns)": pa.array([row.full for row in rows], pa.int64()),
            "Blocked (ns)": pa.array([row.blocked for row in rows], pa.int64()),
            "Blocked Calls": pa.array([row.blocked_calls for row in rows], pa.int64()),
            **apart.columns(list(summed)),
        }
    )
