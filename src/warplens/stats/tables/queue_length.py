"""Launch Queue Length.

## What it shows
How many launches of each stream were called and had not begun, and how long calls had to wait because the queue was full.

## Columns
- Max, Avg, Med: how many waited; Avg and Med over the time from the first call to the last begin.
- Empty (%): of that time, nothing waited for the GPU. Span (ns): that time. Launches: how many.
- Full (ns): the queue held as many as the limit. Blocked (ns), Blocked Calls: time in calls that came when it was full, and how many.
- Host, Rank, PID, Device, Stream: which GPU or stream; each only where the rows differ in it, Stream with `:by=stream`.

## How it is computed
A launch is in the queue from the begin of its call to the begin of its operation: kernels, copies, memsets, graphs (as one). CUDA takes
about 1024 launches into a stream before a call has to wait; `:limit=…` says another number. Of a GPU, process or rank, it is the queues
of all its streams together; Full and Blocked are of each stream, added up.

## Traps
- A short queue is no fault where the GPU is busy: what counts is that it never runs empty. Empty beside idle time means that the host is
  late: gpu_utilization says why.
- A full queue costs nothing: the host is far ahead. It delays what waits for the host's next step, and makes calls look slow.
- Operations whose call was not recorded do not count.
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
    """Return the lengths; MissingData where no operation has its call.

    Args:
        report: the report.
        selection: which part of it.
        by: `stream`, `device`, `process` or `rank`: column that divides the rows.
        limit: how many launches fill the queue of a stream.
    """
    if limit < 1:
        raise UsageError(f"`:limit={limit}` is no length of a queue; give 1 or more.")
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
