"""Where All Time Went, by Cause.

## What it shows
All of the selected time, divided by cause: once for each GPU, and once for the leading thread of
each process.

## Columns
- Time (%): share of the selected time; the rows of a GPU or thread add up to 100.
- Time (ns): the sum; with `:per-step`, the average per step.
- Where: the GPU, or the process and its leading thread.
- Cause: for a GPU `compute`, `communication alone`, `copies alone`, or the cause of idle time, as
  in gpu_utilization. For a thread the causes of gpu_waits_for_cpu: collections, waits for the GIL,
  CUDA calls, imports, C library calls, no free CPU, NVTX ranges, operations, Python functions,
  native functions, and time that nothing in the report explains.
- Most: the largest part of a thread's row.
- Rules: rules of `warplens analyze` that examine such time.

## How it is computed
Overlapping work of a GPU counts as compute first, then as communication, then as copies. If several
causes of a thread overlap, the first one in the order above counts. The leading thread is that of
the steps, or else the first thread that launches kernels, or else the first thread.

## Traps
- The ledger covers the whole recording, while `analyze` judges the main loop. `:per-step` divides
  the loop's time by its number of steps or iterations; --filter-time selects any part.
- Reports with more than a million ranges, calls and switches have no rows of threads.
- A thread that waits for the GPU is in a CUDA call: that is no loss while the GPU computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from warplens.analysis.cpu.culprits import (
    API,
    CPU,
    FUNCTION,
    GC,
    GIL,
    IMPORT,
    NATIVE,
    OP,
    OS,
    RANGE,
    UNKNOWN,
    culprits,
)
from warplens.analysis.gpu.time import parted, spent
from warplens.analysis.gpu.work import gpus
from warplens.analysis.steps.leading import leading
from warplens.analysis.steps.loops import main_loop
from warplens.errors import MissingData
from warplens.report.selection import Selection
from warplens.stats.base import noted
from warplens.stats.by import percent

if TYPE_CHECKING:
    from warplens.report import Report

DEFAULT = False  # `warplens stats` prints it only when asked by name
_DIVIDED = ("nvtx_ranges", "python_calls", "osrt", "cuda_api", "thread_states")
_MOST = 1 << 20  # rows of these that a thread's time is divided by: they take 500 bytes each
_HOST = "gpu_waits_for_cpu, data_loader"
RULES = {
    "compute": "tiny_grids, low_tensor_use, unified_memory_migration",
    "communication alone": "exposed_communication, collective_skew",
    "copies alone": "transfers_not_overlapped, pageable_memory",
    "host-bound": f"{_HOST}, gc_pauses, gil_contention, slow_file_reads, graph_reinstantiation, graph_capture_warmup",
    "sync-bound": "unneeded_sync, cuda_api_sync, cuda_memcpy_sync, cuda_memset_sync, allocator_churn",
    "launch-bound": "small_kernels",
    "copy-bound": "cuda_memcpy_async, pageable_memory",
    "collective wait": "collective_skew",
    "dependency": "single_stream",
    "head": "startup",
    GC: "gc_pauses",
    GIL: "gil_contention",
    API: "unneeded_sync, allocator_churn",
    IMPORT: "startup, late_imports",
    OS: "slow_file_reads, blocked_on_sockets, sleeping",
    CPU: "waits_for_cpu, spinning",
    RANGE: _HOST,
    OP: _HOST,
    FUNCTION: "hot_function, gpu_waits_for_cpu",
    NATIVE: "hot_function, gpu_waits_for_cpu",
}
_NOT_JUDGED = "none: the report does not say"


class _Row(NamedTuple):
    where: str
    cause: str
    most: str | None
    time: int


def table(report: Report, selection: Selection, *, per_step: bool = False) -> pa.Table:
    """Return the ledger; raises MissingData if the report has neither GPUs nor threads.

    Args:
        report: the report.
        selection: the part to use.
        per_step: average over the steps, or the iterations of the main loop.
    """
    steps, told = 1, ""
    if per_step:
        loop = main_loop(report, selection)
        if loop is None:
            raise MissingData(f"does not contain a main loop{selection.place(report)}.")
        steps = loop.iterations
        told = f"Times are of one of {steps:,} {loop.name or 'iterations of the main loop'}, on average."
        selection = Selection(time=(loop.begin - report.origin, loop.end - report.origin))
    begin, end = selection.window(report) or report.span
    many = sum(report.tables[name] for name in _DIVIDED) > _MOST
    rows = [
        *_of_gpus(report, selection),
        *(() if many else _of_threads(report, selection, begin=begin, end=end)),
    ]
    if not rows and many:
        raise MissingData("has no GPU, and too many rows to divide the time of threads.")
    if not rows or end <= begin:
        raise MissingData(f"does not contain GPUs or threads{selection.place(report)}.")
    times = [row.time for row in rows]
    wholes: dict[str, int] = {}
    for row in rows:
        wholes[row.where] = wholes.get(row.where, 0) + row.time
    ledger = pa.table(
        {
            "Time (%)": percent(times, [wholes[row.where] for row in rows]),
            "Time (ns)": pa.array([round(time / steps) for time in times], pa.int64()),
            "Where": pa.array([row.where for row in rows]),
            "Cause": pa.array([row.cause for row in rows]),
            "Most": pa.array([row.most for row in rows], pa.string()),
            "Rules": pa.array([RULES.get(row.cause, _NOT_JUDGED) for row in rows]),
        }
    )
    left_out = "Threads are left out: they have too many rows to be divided by." if many else ""
    return noted(ledger, " ".join(text for text in (told, left_out) if text))


def _of_gpus(report: Report, selection: Selection) -> Iterator[_Row]:
    """Yield the rows of each GPU of each process: what ran, then idle time, most first."""
    busy = {(gpu.process, gpu.device): parted(gpu.merged()) for gpu in gpus(report, selection)}
    names = _pids(report)
    for one in spent(report, selection, "device"):
        process, device, _ = one.seen[:3]
        where = f"GPU {device} of process {names.get(process, process)}"
        ran = busy[process, device]
        for cause, time in (
            ("compute", ran.compute),
            ("communication alone", ran.communication),
            ("copies alone", ran.memory),
        ):
            if time:
                yield _Row(where, cause, None, time=time)
        for cause, time in sorted(one.idle.items(), key=lambda item: -item[1]):
            if time:
                yield _Row(where, cause, None, time=time)


def _of_threads(report: Report, selection: Selection, begin: int, end: int) -> Iterator[_Row]:
    """Yield the rows of the leading thread of each process, most first."""
    pids = _pids(report)
    names = {row["thread"]: row["name"] for row in report.sql("SELECT thread, name FROM threads").to_pylist()}
    for process, thread in sorted(leading(report, selection).items()):
        sums: dict[str, int] = {}
        most: dict[str, str] = {}
        for culprit in culprits(report, thread, begin=begin, end=end):
            most.setdefault(culprit.kind, culprit.name)
            sums[culprit.kind] = sums.get(culprit.kind, 0) + culprit.time
        where = f"{names.get(thread) or 'thread'} of process {pids.get(process, process)}"
        for kind, time in sorted(sums.items(), key=lambda item: -item[1]):
            yield _Row(where, kind if kind != UNKNOWN else "not known", most[kind] or None, time=time)


def _pids(report: Report) -> dict[int, int]:
    return {
        row["process"]: row["pid"] for row in report.sql("SELECT process, pid FROM processes").to_pylist()
    }
