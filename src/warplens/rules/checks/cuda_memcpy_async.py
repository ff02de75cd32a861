"""Asynchronous copies that make the host wait, because the memory is pageable.

## What it looks for
Calls of `cudaMemcpyAsync` and similar functions from or to pageable host memory, of any size.
Identical to nsys's rule of this name.

## Why it costs time
The GPU can only access page-locked memory. CUDA copies pageable memory through an internal buffer,
and the call returns when that is done: it is asynchronous in name only. While the host waits it
launches nothing, so that the GPU becomes idle afterwards. The copy itself takes longer, too: host
and GPU both wait, although the GPU counts as busy. The estimate is the larger of the two losses, at
most the time that the host waited.

## What to do
Use page-locked memory with `non_blocking=True`: `pin_memory=True` of a PyTorch `DataLoader`,
`tensor.pin_memory()`, `cudaHostAlloc`, `cudaHostRegister`. Read values on the host
(`tensor.item()`, `.cpu()`, `print(loss)`) every hundredth step only.

## When it does not apply
If the host needs the value before it can continue: the wait remains with any memory. If another
thread keeps the GPU busy, or the host has nothing else to do, there is nothing to save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.intervals import Cover
from warplens.model.words import duration, size
from warplens.rules.base import Finding
from warplens.rules.blocked import blocked
from warplens.rules.copies import (
    Copies,
    kinds_known,
    moving_copies,
    number_of_copies,
    of_gpu,
    rates,
    saved_by_locking,
    single_values,
)
from warplens.rules.gpus import GpuOperations, gpus
from warplens.rules.host_calls import Cost, HostCalls, Slower, needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#pinned-memory"

_LARGE = 65536  # bytes from which on a copy shows the rate


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 0.5) -> list[Finding]:
    """Return a finding where such copies cost time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of copies kept as evidence.
        least: percent of the judged time that they must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    kinds_known(report)
    slower = _slower(devices, moving_copies(report))
    pageable = "a.name ILIKE '%Async%' AND 'Pageable' IN (m.source_kind, m.destination_kind)"

    def words(copies: HostCalls, spent: Cost) -> tuple[str, str, str, str, str]:
        return (
            "cuda_memcpy_async",
            "asynchronous copies",
            f"{number_of_copies(len(copies), 'asynchronous')} of pageable memory",
            f"The calls moved {size(int(copies.bytes.sum()))} from or to memory that is not "
            "page-locked, so each returned only when CUDA "
            "had passed the data through an internal buffer. With page-locked memory the host would "
            f"continue immediately, and the copies would end sooner: {duration(spent.estimate)} of "
            f"its waiting is lost.{single_values(report, selection, pageable)}",
            "Copy from and to page-locked memory (pin_memory=True of the DataLoader, "
            "tensor.pin_memory(), cudaHostAlloc) with "
            "non_blocking=True; read single values (item(), cpu()) less often.",
        )

    return blocked(
        report, selection, pageable, table="memcpys", words=words, rows=rows, least=least, slower=slower
    )


def _slower(devices: tuple[GpuOperations, ...], moved: Copies) -> Slower:
    """Return when GPUs did nothing but such copies, and what page-locked memory would save of it."""
    alone = {}
    for gpu in devices:
        place, copies = of_gpu(gpu, moved)
        slow = copies & moved.pageable[place] & (moved.bytes[place] >= _LARGE) if copies.any() else copies
        alone[gpu.process, gpu.device] = Cover(gpu.start[slow], gpu.end[slow]).without(
            Cover(gpu.start[~slow], gpu.end[~slow])
        )
    return Slower(alone, saved_by_locking(*rates(devices, moved, None, large=_LARGE)))
