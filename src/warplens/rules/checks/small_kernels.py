"""Kernels so short that launching them takes longer than running them.

## What it looks for
Stretches in which a GPU waited for one launch after another: each launch came after the previous
work had ended, although the thread launched without a pause. The cost is the GPU's idle time
between these kernels.

## Why it costs time
A launch takes the host 2 to 10 us, with a framework often 20 us and more. A shorter kernel ends
before the next one arrives: then the speed of the host matters, not that of the GPU.

## What to do
Use fewer, larger kernels: `torch.compile` fuses elementwise operations; use fused optimizers
(`fused=True`, or `foreach=True`), fused attention and larger batches. Or launch them all at once
with CUDA graphs (`torch.compile(mode="reduce-overhead")`, `torch.cuda.graphs`, JAX's `jit` around
the whole step), in which kernels follow each other within about 1 us.

## When it does not apply
If a profiler that records every call makes launches slower: compare the step's time without it. If
the host waits for something else between launches (data, locks): see `gpu_waits_for_cpu`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import KERNEL, GpuOperations, gpus, span, together
from warplens.rules.host_calls import needed
from warplens.rules.launches import KernelLaunches, fewer_launches, launches

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#reduce-cpu-overhead-with-cuda-graphs"
IDLE = ("launch-bound", "host-bound")
_IN_A_GRAPH = 1_000  # ns between two kernels of a graph


def check(
    report: Report,
    selection: Selection,
    *,
    rows: int = 50,
    apart: float = 100,
    fewest: int = 100,
    least: float = 2.0,
) -> list[Finding]:
    """Return a finding where short kernels cost time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of stretches kept as evidence.
        apart: us; a longer pause between two launches, or a longer gap, is not the cost of
            launching.
        fewest: minimum number of late kernels.
        least: percent of the judged time that launching must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    made = launches(report)
    lost, best, evidence = [], 0, []
    kernels, length, number, waited = 0, [], 0, 0
    for gpu in devices:
        late = _late(gpu, made, int(apart * 1000))
        if not late.any():
            continue
        begin, end = gpu.busy.end[:-1][late], gpu.busy.start[1:][late]
        lost.append(Cover(begin, end))
        waited += int((end - begin).sum())
        best = max(best, int(np.maximum(end - begin - _IN_A_GRAPH, 0).sum()))
        kernels += int(late.sum())
        length.append((gpu.busy.end - gpu.busy.start)[1:][late])
        stretches = _stretches(gpu, late)
        number += int(np.count_nonzero(np.diff(late.astype(np.int8), prepend=0) == 1))
        evidence += sorted(stretches, key=lambda row: -row.values["gpu_idle_ns"])[:rows]
    bound = together(lost)
    if kernels < fewest or bound == 0 or bound < span(report, selection) * least / 100:
        return []
    whole = span(report, selection)
    median = float(np.median(np.concatenate(length)))
    return [
        Finding(
            rule="small_kernels",
            subject="short kernels",
            title=f"{'GPUs' if len(lost) > 1 else 'The GPU'} waited {duration(bound)} for launches of short kernels",
            cause=f"{counted(kernels, 'kernel')} began when the GPU had already run out of work: half of them ran for less than "
            f"{duration(median)}, and the next launch came {duration(waited / kernels)} too late on average, though the thread did nothing "
            f"but launch. With the launches out of the way {percent(min(best, bound) / whole)} of the time could be won.",
            fix=fewer_launches(report, selection),
            evidence=tuple(sorted(evidence, key=lambda row: -row.values["gpu_idle_ns"])[:rows]),
            occurrences=number,
            bound=bound,
            estimate=min(best, bound),
            confidence="medium",
            claim=Cover(
                *(np.concatenate([getattr(part, edge) for part in lost]) for edge in ("start", "end"))
            ),
        )
    ]


def _late(gpu: GpuOperations, made: KernelLaunches, apart: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the gaps of a GPU that a late kernel ended. Its thread did nothing but launch."""
    if not len(made.id):
        return np.zeros(max(len(gpu.busy.start) - 1, 0), bool)
    # Gap i lies between the busy stretches i and i + 1.
    first = np.searchsorted(gpu.start, gpu.busy.start[1:], "left")  # the operation that ended each gap
    call, known = made.find(gpu.api[first])
    late = (
        known
        & (gpu.kind[first] == KERNEL)
        & (made.end[call] > gpu.busy.end[:-1])
        & (gpu.busy.start[1:] - gpu.busy.end[:-1] <= apart)
    )
    return np.asarray(late & (made.start[call] - made.before[call] <= apart), bool)


def _stretches(gpu: GpuOperations, late: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Evidence]:
    """Return the stretches of gaps that come one after the other."""
    # The edges of runs of True: late = [T, T, F, T] gives edges [0, 2, 3, 4], so the runs [0, 2) and [3, 4).
    edges = np.flatnonzero(np.diff(np.concatenate(([False], late, [False])).astype(np.int8)))
    idle = np.concatenate(([0], np.cumsum(gpu.busy.start[1:] - gpu.busy.end[:-1])))
    first = np.searchsorted(gpu.start, gpu.busy.start, "left")
    rows = []
    low, high = edges[::2], edges[1::2]
    most = np.argsort(-(idle[high] - idle[low]), kind="stable")[:1000]
    for a, b in zip(low[most].tolist(), high[most].tolist(), strict=True):
        lost, number = int(idle[b] - idle[a]), int(first[b] - first[a])
        begin, end = int(gpu.busy.end[a]), int(gpu.busy.start[b])
        text = f"{gpu.label} idle for {duration(lost)} between {counted(number, 'operation')}, each launched too late"
        values = {"gpu_idle_ns": lost, "operations": number}
        rows.append(
            Evidence(
                table="kernels",
                id=int(gpu.id[first[b]]),
                start=begin,
                end=end,
                text=text,
                process=gpu.process,
                device=gpu.device,
                values=values,
            )
        )
    return rows
