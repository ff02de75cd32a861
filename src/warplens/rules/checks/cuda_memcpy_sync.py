"""Copies that make the host wait, because they were called without Async.

## What it looks for
Calls of `cudaMemcpy` and similar functions without `Async` in their names. As in nsys's rule of
this name, copies within one device and copies of at most 64 KB to it do not count, because their
calls do not wait.

## Why it costs time
The call returns when the copy is done. On the default stream, all work before it must be done as
well. The host launches nothing until then, so that the GPU becomes idle afterwards, and the copy
cannot overlap with a kernel.

## What to do
Use `cudaMemcpyAsync` with page-locked memory in a separate stream, and let the stream that needs
the data wait for an event. In PyTorch: `tensor.to(device, non_blocking=True)` from pinned memory.
Copy to the host only when the value is needed, and as late as possible.

## When it does not apply
If the host needs the data immediately, the wait only moves. If another thread keeps the GPU busy,
there is nothing to save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.model.words import duration, size
from warplens.rules.base import Finding
from warplens.rules.blocked import blocked
from warplens.rules.copies import number_of_copies, single_values
from warplens.rules.gpus import gpus
from warplens.rules.host_calls import Cost, HostCalls, needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#asynchronous-and-overlapping-transfers-with-computation"
IDLE = ("sync-bound", "copy-bound")


def check(
    report: Report, selection: Selection, *, rows: int = 50, staged: int = 65536, least: float = 0.5
) -> list[Finding]:
    """Return a finding where such copies cost time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of copies kept as evidence.
        staged: bytes up to which a copy to the device does not make the host wait.
        least: percent of the judged time that they must be able to cost.
    """
    gpus(report, selection)
    needed(report, selection)
    blocking = (
        "a.name ILIKE '%memcpy%' AND a.name NOT ILIKE '%Async%' AND m.kind <> 'Device-to-Device' "
        f"AND NOT (m.kind = 'Host-to-Device' AND m.bytes <= {int(staged)})"
    )

    def words(copies: HostCalls, spent: Cost) -> tuple[str, str, str, str, str]:
        return (
            "cuda_memcpy_sync",
            "synchronous copies",
            f"{number_of_copies(len(copies), 'synchronous')}",
            f"The calls moved {size(int(copies.bytes.sum()))} and returned only when the GPU had "
            "done it, and all work before it. "
            f"Afterwards "
            f"the GPU had nothing to do for {duration(spent.estimate)} that the host could have "
            "used to launch."
            f"{single_values(report, selection, blocking)}",
            "Use cudaMemcpyAsync with page-locked memory in a separate stream (PyTorch: to(device, "
            "non_blocking=True) from pinned "
            "memory), and wait for an event before the data is used.",
        )

    return blocked(report, selection, blocking, table="memcpys", words=words, rows=rows, least=least)
