"""Memsets that make the host wait.

## What it looks for
Calls of `cudaMemset` and similar functions without `Async` in their names, on page-locked host
memory or managed memory. On device memory the call does not wait. Identical to nsys's rule of this
name.

## Why it costs time
The call returns when the memory is set and all work before it is done. The host launches nothing
until then, so that the GPU becomes idle afterwards.

## What to do
Use `cudaMemsetAsync` in the stream that uses the memory.

## When it does not apply
If the host reads the memory next, the wait only moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.model.words import counted, duration
from warplens.rules.base import Finding
from warplens.rules.blocked import blocked
from warplens.rules.gpus import gpus
from warplens.rules.host_calls import Cost, HostCalls, needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html"
IDLE = ("sync-bound",)


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 0.5) -> list[Finding]:
    """Return a finding where such calls cost time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of calls kept as evidence.
        least: percent of the judged time that they must be able to cost.
    """
    gpus(report, selection)
    needed(report, selection)
    blocking = (
        "a.name ILIKE '%memset%' AND a.name NOT ILIKE '%Async%' AND m.memory_kind IN ('Pinned', 'Managed')"
    )

    def words(memsets: HostCalls, spent: Cost) -> tuple[str, str, str, str, str]:
        return (
            "cuda_memset_sync",
            "synchronous memsets",
            f"{counted(len(memsets), 'synchronous memset')}",
            "On page-locked and managed memory the call returns only when the GPU has set it, and has done all work before. Afterwards the "
            f"GPU had nothing to do for {duration(spent.estimate)} that the host could have used to launch.",
            "Use cudaMemsetAsync in the stream that uses the memory.",
        )

    return blocked(report, selection, blocking, table="memsets", words=words, rows=rows, least=least)
