"""Kernel Launch Latency.

## What it shows
Time from the call to the start of the kernel if nothing else delays it. Kernels that waited behind
earlier work of their stream are shown separately.

## Columns
- Launches: kernels whose call was recorded. Free: launches into a free stream: earlier work on it
  had ended when the call began.
- Lat Avg, Med, Min, P99, Max (ns): latency of the Free launches, from the start of the call to the
  start of the kernel.
- Queued: launches that came while earlier work waited or ran. Queue Avg, Med, Max (ns): their time
  from call to start.
- Short: kernels that ran for less time than their call took.
- Slow Calls: calls longer than 50 us (`:slow-call=…`, ns). Late: Free launches with a latency above
  100 us (`:late=…`, ns).
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.

## How it is computed
From kernels and graphs. A graph counts as one launch that begins with its first node. A call that
ends after the kernel began counts like any other.

## Traps
- A kernel that waits for an event of another stream finds its own stream free: its latency includes
  that wait.
- The first launch of a kernel loads its code. Max and Slow Calls show that, Med does not.
- If most kernels are Short, the host limits the program: fuse kernels, or launch them as a CUDA
  graph.
- Recording itself makes calls slower by a few hundred ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.api_calls import ApiCalls
from warplens.analysis.gpu.kernel_classes import CLASSES
from warplens.analysis.gpu.launch_queue import Launched, launched
from warplens.analysis.gpu.work import GRAPH, gpus
from warplens.stats.by import By
from warplens.stats.launches import nothing_launched

if TYPE_CHECKING:
    from warplens.arrays import Int64Array
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name
_LATENCY = {
    "Avg": np.mean,
    "Med": np.median,
    "Min": np.min,
    "P99": lambda values: np.percentile(values, 99),
    "Max": np.max,
}


def table(
    report: Report, selection: Selection, *, by: str = "device", slow_call: int = 50_000, late: int = 100_000
) -> pa.Table:
    """Return the latencies; raises MissingData if no kernel has its call.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `stream`, `process` or `rank`: one row for each.
        slow_call: ns; longer calls count as slow.
        late: ns; longer latencies count as late.
    """
    apart, calls = By.of(report, by), ApiCalls(report)
    latencies = apart.grouped(
        (
            (gpu.process, gpu.device, stream),
            _seen(part.chosen((part.kind < len(CLASSES)) | (part.kind == GRAPH)), slow_call, late),
        )
        for gpu in gpus(report, selection, classes=False)
        for stream, part in launched(gpu, calls)
    )
    summed = {key: _row(parts) for key, parts in latencies if any(part.launches for part in parts)}
    if not summed:
        raise nothing_launched(report, selection)
    rows = list(summed.values())
    kinds = {
        name: pa.int64()
        if name in ("Launches", "Free", "Queued", "Short", "Slow Calls", "Late")
        else pa.float64()
        for name in rows[0]
    }
    return pa.table(
        {
            **{name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()},
            **apart.columns(list(summed)),
        }
    )


class _Seen(NamedTuple):
    """Launches into a stream: ns from call to begin where the stream was free, and where it was not; and counts."""

    direct: Int64Array
    behind: Int64Array
    launches: int
    short: int
    slow: int
    late: int


def _seen(part: Launched, slow_call: int, late: int) -> _Seen:
    took = np.maximum(part.began - part.called, 0)
    idle = part.free <= part.called
    direct, call = took[idle], part.returned - part.called
    short, slow = int((part.ended - part.began < call).sum()), int((call > slow_call).sum())
    return _Seen(direct, took[~idle], len(took), short=short, slow=slow, late=int((direct > late).sum()))


def _row(parts: list[_Seen]) -> dict[str, float | int | None]:
    direct, behind = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("direct", "behind")
    )
    return {
        "Launches": sum(part.launches for part in parts),
        "Free": len(direct),
        **{f"Lat {name} (ns)": _of(call, direct) for name, call in _LATENCY.items()},
        "Queued": len(behind),
        **{f"Queue {name} (ns)": _of(_LATENCY[name], behind) for name in ("Avg", "Med", "Max")},
        "Short": sum(part.short for part in parts),
        "Slow Calls": sum(part.slow for part in parts),
        "Late": sum(part.late for part in parts),
    }


def _of(call: object, values: Int64Array) -> float | None:
    return float(call(values)) if len(values) else None  # type: ignore[operator]
