"""Copies between host and GPU that are slow because the host memory is pageable.

## What it looks for
Copies from or to pageable memory, for each direction, and the time in which a GPU did nothing but these. The rate that page-locked memory
would give is taken from the copies of page-locked memory in the same report; where there are none, twice the rate is assumed.

## Why it costs time
CUDA copies pageable memory piece by piece through a small internal buffer: the data is moved twice, by the CPU first. The GPU's copy
engine waits for the CPU, and nothing can run beside.

## What to do
Allocate with `cudaHostAlloc`, or `cudaHostRegister` what is there; `pin_memory=True` in a PyTorch `DataLoader`, `tensor.pin_memory()`,
`torch.empty(..., pin_memory=True)` for what comes back. Page-lock buffers once and use them again: to lock pages takes longer than to copy.

## When it does not apply
If copies are small (up to some 10 KB): latency bounds them, whatever the memory. On machines where the GPU can read pageable memory
(Grace Hopper, HMM) there may be no difference. Page-locked memory is not swapped: too much of it harms the rest of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.model.words import duration, size
from warplens.rules.base import Evidence, Finding
from warplens.rules.copies import (
    Copies,
    kinds_known,
    moving_copies,
    number_of_copies,
    of_gpu,
    rates,
    saved_by_locking,
)
from warplens.rules.gpus import gpus, span, together

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
_DIRECTIONS = {"Host-to-Device": "to the GPU", "Device-to-Host": "to the host"}


def check(
    report: Report, selection: Selection, *, rows: int = 50, large: int = 65536, least: float = 1.0
) -> list[Finding]:
    """Return a finding for each direction with such copies.

    Args:
        report: the report.
        selection: which part of it.
        rows: how many of the copies to keep as evidence.
        large: bytes from which on a copy tells the rate.
        least: percent of the time looked at that the copies of a direction must be able to cost.
    """
    devices = gpus(report, selection)
    kinds_known(report)
    moved = moving_copies(report)
    findings = [
        _of(direction, report, selection, moved=moved, rows=rows, large=large)
        for direction in _DIRECTIONS
        if devices
    ]
    enough = span(report, selection) * least / 100
    return [
        finding
        for finding in findings
        if finding is not None and finding.estimate and (finding.bound or 0) >= enough
    ]


def _of(
    direction: str, report: Report, selection: Selection, moved: Copies, rows: int, large: int
) -> Finding | None:
    alone, evidence = [], []
    total = number = 0
    for gpu in gpus(report, selection):
        place, copies = of_gpu(gpu, moved, direction)
        slow = copies & moved.pageable[place] if copies.any() else copies
        if not slow.any():
            continue
        length = gpu.end - gpu.start
        alone.append(Cover(gpu.start[slow], gpu.end[slow]).without(Cover(gpu.start[~slow], gpu.end[~slow])))
        total, number = total + int(moved.bytes[place][slow].sum()), number + int(slow.sum())
        for n in np.flatnonzero(slow)[np.argsort(-length[slow], kind="stable")][:rows].tolist():
            much = int(moved.bytes[place[n]])
            text = (
                f"copy of pageable memory {_DIRECTIONS[direction]}, {much / max(int(length[n]), 1):.1f} GB/s"
            )
            evidence.append(
                Evidence(
                    table="memcpys",
                    id=int(gpu.id[n]),
                    start=int(gpu.start[n]),
                    end=int(gpu.end[n]),
                    text=text,
                    process=gpu.process,
                    device=gpu.device,
                    values={"bytes": much},
                )
            )
    bound = together(alone)
    rate, locked = rates(gpus(report, selection), moved, direction, large=large)
    if not rate or not bound:
        return None
    measured = (
        f"page-locked memory had {locked:.1f} GB/s in this run"
        if locked
        else "page-locked memory usually has twice as much"
    )
    return Finding(
        rule="pageable_memory",
        subject=direction,
        title=f"{number_of_copies(number, 'pageable')} {_DIRECTIONS[direction]} took {duration(bound)} with the GPU doing nothing else",
        cause=f"{size(total)} went between pageable memory and the GPU at {rate:.1f} GB/s; {measured}. "
        "CUDA moves such data through an internal "
        "buffer, piece by piece.",
        fix="Page-lock the memory once and use it again: pin_memory=True of the DataLoader, tensor.pin_memory(), cudaHostAlloc or "
        "cudaHostRegister.",
        evidence=tuple(sorted(evidence, key=lambda row: (row.start - row.end, row.start))[:rows]),
        occurrences=number,
        bound=bound,
        estimate=int(bound * saved_by_locking(rate, locked)),
        confidence="medium" if locked else "low",
        claim=Cover(*(np.concatenate([getattr(part, edge) for part in alone]) for edge in ("start", "end"))),
    )
