"""Copies between host and GPU during which no kernel ran.

## What it looks for
For each GPU, the time between the first and the last kernel in which data moved between host and
GPU, or between GPUs, and no kernel ran. Copies within the device count as work.

## Why it costs time
A GPU has copy engines beside its multiprocessors: data for the next step can arrive while the
current one computes. Such a copy costs nothing, as long as there is enough to compute.

## What to do
Copy the next batch in a separate stream while the current one computes (a prefetcher; in PyTorch
page-locked memory, `non_blocking=True` and `torch.cuda.stream`). Split large copies into pieces
that are used one by one. Keep data that returns in every step on the GPU. If memory is short and
layers are offloaded to the host, prefetch them one layer ahead.

## When it does not apply
If the kernels need exactly this data, and nothing else can be computed in the meantime. If the GPU
is idle most of the time anyway, the host hides the copies, and hiding them behind kernels saves
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.model.words import duration, size
from warplens.rules.base import Evidence, Finding
from warplens.rules.copies import Copies, moving_copies
from warplens.rules.gpus import COPY, GpuOperations, gpus, merged, span

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#asynchronous-and-overlapping-transfers-with-computation"
_AT_ONCE = 20_000  # ns: work that begins this soon after a copy has waited for it


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 1.0) -> list[Finding]:
    """Return a finding of the GPUs with such copies.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of copies kept as evidence.
        least: percent of the judged time that the copies of a GPU must be able to cost.
    """
    devices = [gpu for gpu in gpus(report, selection) if len(gpu.running.start)]
    if not devices:
        raise MissingData(f"does not contain CUDA kernel data{selection.place(report)}.")
    moved = moving_copies(report)
    findings = [_of(gpu, moved, rows, least=span(report, selection) * least / 100) for gpu in devices]
    return merged([finding for finding in findings if finding is not None], rows)


def _of(gpu: GpuOperations, moved: Copies, rows: int, least: float) -> tuple[Finding, Cover] | None:
    place, known = moved.find(gpu.id)
    mine = (gpu.kind == COPY) & known
    # Only copies between the first and the last kernel: what is copied before or after cannot be
    # hidden.
    mine &= (gpu.start < gpu.running.end[-1]) & (gpu.end > gpu.running.start[0])
    start, end, place = gpu.start[mine], gpu.end[mine], place[mine]
    first, last = gpu.running.start[:1], gpu.running.end[-1:]
    copying = Cover(start, end).both(Cover(first, last))
    alone = copying.without(gpu.running)
    if len(start) < 2 or alone.total < least or not alone.total:
        return None
    free = gpu.running.without(copying).total
    # work that begins right after a copy counts as having waited for it
    begins = np.append(gpu.running.start, np.iinfo(np.int64).max)
    waited = begins[np.searchsorted(begins, alone.end, "left")] - alone.end <= _AT_ONCE
    estimate = min(int((alone.end - alone.start)[waited].sum()), free)
    lonely = alone.within(start, end)
    order = np.lexsort((start, -lonely))[: min(rows, int((lonely > 0).sum()))]
    evidence = tuple(
        _row(gpu, moved, int(n), place=int(place[n]), mine=mine, lonely=int(lonely[n])) for n in order
    )
    number = int((lonely > 0).sum())
    shared = int(np.isin(gpu.stream[mine][lonely > 0], gpu.stream[gpu.kind != COPY]).sum())
    pageable = int(moved.pageable[place][lonely > 0].sum())
    total = size(int(moved.bytes[place][lonely > 0].sum()))
    why = [f"{shared:,} of them share a stream with kernels, and each waits for the other."] if shared else []
    why += [f"{pageable:,} of them use pageable memory, which must be page-locked first."] if pageable else []
    if alone.total > free:
        why.append(
            f"Kernels ran for only {duration(free)} without a copy: no more can be hidden, the "
            "rest can only be won by moving less."
        )
    finding = Finding(
        rule="transfers_not_overlapped",
        subject=gpu.label,
        title=f"{gpu.label} only copied for {duration(alone.total)}, with no kernel beside it",
        cause=f"{number:,} {'copy' if number == 1 else 'copies'} between host and GPU ({total}) ran while no kernel did: "
        f"{duration(alone.total)} of {duration(copying.total)} of copying. {' '.join(why)}",
        fix="Copy the next data in a separate stream, from page-locked memory, while the GPU computes (PyTorch: pin_memory=True, "
        "non_blocking=True and a prefetching stream); keep on the GPU what is moved every step.",
        evidence=evidence,
        occurrences=number,
        bound=alone.total,
        estimate=estimate,
        confidence="medium",
        claim=alone,
    )
    return finding, alone


def _row(
    gpu: GpuOperations, moved: Copies, number: int, place: int, mine: npt.NDArray[np.bool_], lonely: int
) -> Evidence:
    which = int(np.flatnonzero(mine)[number])
    values = {"bytes": int(moved.bytes[place]), "alone_ns": lonely}
    text = (
        f"copy {moved.kind[place]} on stream {int(gpu.stream[which])}, {duration(lonely)} of it "
        "without a kernel"
    )
    return Evidence(
        table="memcpys",
        id=int(gpu.id[which]),
        start=int(gpu.start[which]),
        end=int(gpu.end[which]),
        text=text,
        process=gpu.process,
        device=gpu.device,
        values=values,
    )
