"""Memory that is set while the host waits.

## What it looks for
Calls of `cudaMemset` and its kin without `Async` in their names, on page-locked memory of the host or on managed memory; on memory of the
device the call does not wait. The same as nsys's rule of this name.

## Why it costs time
The call returns when the memory is set, and all work before it is done. Nothing is launched meanwhile, so that the GPU runs dry after it.

## What to do
Use `cudaMemsetAsync` in the stream that uses the memory.

## When it is wrong
Where the host reads the memory next, the wait only moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpline.model.words import counted, duration
from warpline.rules.base import Finding
from warpline.rules.gpus import gpus, span
from warpline.rules.host_calls import calls, cost, evidence, needed, severity
from warpline.rules.lines import located

if TYPE_CHECKING:
    from warpline.query import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html"


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 0.5) -> list[Finding]:
    """Return a finding where such calls cost time.

    Args:
        report: the report.
        selection: which part of it.
        rows: how many of the calls to keep as evidence.
        least: percent of the time looked at that they must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    blocking = "a.name ILIKE '%memset%' AND a.name NOT ILIKE '%Async%' AND m.memory_kind IN ('Pinned', 'Managed')"
    found = calls(report, selection, blocking, "memsets")
    spent = cost(found, devices)
    if spent.bound == 0 or spent.bound < span(report, selection) * least / 100:
        return []
    waited = duration(int((found.end - found.start).sum()))
    return [
        Finding(
            "cuda_memset_sync",
            "synchronous memsets",
            f"{counted(len(found), 'synchronous memset')} made the host wait {waited}",
            "On page-locked and managed memory the call returns only when the GPU has set it, and has done all work before. Afterwards the "
            f"GPU had nothing to do for {duration(spent.estimate)} that the host could have used to launch.",
            "Use cudaMemsetAsync in the stream that uses the memory.",
            located(report, evidence(found, spent, rows)),
            len(found),
            spent.bound,
            spent.estimate,
            "medium",
            severity(spent, span(report, selection)),
        )
    ]
