"""Copies between host and GPU that are slow because the host memory is pageable.

## What it looks for
Copies from or to pageable memory, by direction, and the time in which a GPU did nothing but these.
The rate of page-locked memory is taken from other copies in the same report; if there are none,
twice the rate is assumed.

## Why it costs time
CUDA copies pageable memory in pieces through a small internal buffer: the CPU moves the data first,
then the copy engine. The engine waits for the CPU, and nothing can overlap with the copy.

## What to do
Allocate with `cudaHostAlloc`, or use `cudaHostRegister` on existing memory. In PyTorch:
`pin_memory=True` of a `DataLoader`, `tensor.pin_memory()`, `torch.empty(..., pin_memory=True)` for
results. Page-lock buffers once and reuse them: locking pages takes longer than copying.

## When it does not apply
If copies are small (up to about 10 KB): latency limits them with any memory. If the GPU can read
pageable memory (Grace Hopper, HMM), there may be no difference. Too much page-locked memory harms
the rest of the machine, because it cannot be swapped.
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
        selection: the part to use.
        rows: maximum number of copies kept as evidence.
        large: minimum size of the copies that define the rate, bytes.
        least: percent of the judged time that the copies of a direction must be able to cost.
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
        "CUDA moves such data through an internal buffer, in small pieces.",
        fix="Page-lock the memory once and use it again: pin_memory=True of the DataLoader, tensor.pin_memory(), cudaHostAlloc or "
        "cudaHostRegister.",
        evidence=tuple(sorted(evidence, key=lambda row: (row.start - row.end, row.start))[:rows]),
        occurrences=number,
        bound=bound,
        estimate=int(bound * saved_by_locking(rate, locked)),
        confidence="medium" if locked else "low",
        claim=Cover(*(np.concatenate([getattr(part, edge) for part in alone]) for edge in ("start", "end"))),
    )
