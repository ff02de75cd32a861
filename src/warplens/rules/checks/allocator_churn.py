"""GPU memory that the program allocates and frees again and again.

## What it looks for
Calls of `cudaMalloc`, `cudaFree` and similar functions, including page-locked host memory. The
first fifth of the GPU's working time is warm-up and does not count, unless it has no more of these
calls than the rest. Of ten equal parts of the rest, at least three must contain calls.
Stream-ordered allocation (`cudaMallocAsync`) is cheap and does not count. A single allocation of
most of a GPU's memory, as JAX and TensorFlow make at their start, is reported as information.

Python samples name `torch.cuda.empty_cache()` and the line that calls it. If calls fail for lack of
memory, or memory is freed in bursts before new allocations, the finding says that a caching
allocator releases its memory and tries again.

## Why it costs time
`cudaMalloc` takes up to a millisecond, page-locked memory more. `cudaFree` waits until the GPU has
finished all of its work. During these calls the host launches nothing, and the GPU becomes idle.

## What to do
Allocate once, before the loop. Or use an allocator that keeps its memory: PyTorch's (without
`torch.cuda.empty_cache()` in the loop; with `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` if
sizes vary), `cudaMallocAsync` with a memory pool, or RMM.

## When it does not apply
If the recording is so short that the program was still warming up. If shapes change and memory is
nearly full, PyTorch must free blocks to get others: then use less memory, not another allocator.
Bursts alone do not show which code caused them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import nearest
from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray
from warplens.model.words import counted, duration, percent, size
from warplens.rules.base import Evidence, Finding, Without
from warplens.rules.gpus import GpuOperations, gpus, span
from warplens.rules.host_calls import HostCalls, calls, cost, evidence, needed
from warplens.rules.hosts import numbers
from warplens.rules.idle_time import held
from warplens.rules.lines import located, own_line

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"
IDLE = ("sync-bound", "host-bound")
_ALLOCATES = (
    r"regexp_matches(a.name, "
    r"'^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree)(Host|Pitch|Managed|3D|Array|3DArray)?$"
    r"|^cuMem(Alloc|Free|HostAlloc)(Host|Pitch|Managed)?(_v[0-9]+)?$')"
)
_PARTS = 10
_SPREAD = 4  # parts with calls: a library that is loaded late allocates in two or three
_POOL = 0.5  # share of a GPU's memory
_MOSTLY = (
    0.3  # share of the calls' time in empty_cache() that names it: freeing waits, allocating again does not
)
_BURST = 3  # calls in a row
_DENSER = 1.5  # times as many calls in the same time: what begins so warms up; else the first fifth is like the rest
_OUT_OF_MEMORY = 2


def check(
    report: Report,
    selection: Selection,
    *,
    rows: int = 50,
    warm_up: float = 20,
    fewest: int = 10,
    least: float = 0.5,
) -> list[Finding]:
    """Return a finding where allocation costs time, and one for each GPU whose memory was taken at once.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of calls kept as evidence.
        warm_up: percent of a process's time on the GPU that counts as warm-up.
        fewest: minimum number of calls after the warm-up.
        least: percent of the judged time that they must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    allocations = calls(report, selection, _ALLOCATES)
    mine = _steady(allocations, devices, warm_up / 100)
    pools = _pools(report)
    if int(mine.sum()) < fewest:
        return pools
    spent = cost(allocations, devices, mine, held=held(report, selection))
    if spent.bound == 0 or spent.bound < span(report, selection) * least / 100:
        return pools
    names, numbers = np.unique(allocations.name[mine].astype(str), return_counts=True)
    listed = ", ".join(
        f"{number:,} of {name}" for name, number in zip(names.tolist(), numbers.tolist(), strict=True)
    )
    length = int((allocations.end - allocations.start)[mine].sum())
    number = int(mine.sum())
    why, fix = _why(report, allocations.of(mine))
    return [
        Finding(
            rule="allocator_churn",
            subject="allocation in the loop",
            title=f"{counted(number, 'call')} that allocate or free memory after the warm-up took {duration(length)}",
            cause=f"{listed}, spread over the run. {why}The host launches nothing during these calls, and "
            "freeing waits for the GPU; afterwards "
            f"the GPU did nothing for {duration(spent.estimate)} that the host could have used to launch.",
            fix=fix,
            evidence=located(report, evidence(allocations, spent, min(rows, number))),
            occurrences=number,
            bound=spent.bound,
            estimate=spent.estimate,
            confidence="medium",
            claim=spent.claim,
            without=Without(
                threads=frozenset(allocations.thread[mine].tolist()),
                time=Cover(allocations.start[mine], allocations.end[mine]),
                waits=allocations.id[mine],
            ),
        ),
        *pools,
    ]


def _why(report: Report, some: HostCalls) -> tuple[str, str]:
    """Return a sentence on why these calls are made, empty where nothing says it, and what to do."""
    share, line = _emptying(report, some)
    if share >= _MOSTLY:
        where = f", called from {line}" if line else ""
        return f"In {percent(share)} of that time Python was in empty_cache(){where}. ", (
            "Take empty_cache() out of the loop: the allocator gives its memory back, and asks the "
            "driver for the same again."
        )
    refused = (
        report.sql(
            f"""SELECT count(*) FROM cuda_api WHERE result = {_OUT_OF_MEMORY} AND id IN (SELECT unnest($ids))""",
            {"ids": some.id.tolist()},
        )
        .column(0)[0]
        .as_py()
    )
    bursts, freed = _bursts(some)
    if refused or 2 * freed >= np.count_nonzero(_frees(some)) > 0:
        refusals = f"{counted(refused, 'call')} returned out of memory. " if refused else ""
        return (
            f"{refusals}Memory was freed in {counted(bursts, 'burst')} before new allocations: a "
            "caching allocator had run out of memory. ",
            (
                "Reduce peak memory: smaller batches, checkpointed activations, expandable segments "
                "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) if sizes vary; no empty_cache() "
                "in the loop."
            ),
        )
    return "", (
        "Allocate before the loop, or through an allocator that keeps memory: PyTorch's (no "
        "empty_cache() in the loop; expandable "
        "segments if sizes vary), cudaMallocAsync with a pool, RMM."
    )


def _emptying(report: Report, some: HostCalls) -> tuple[float, str]:
    """Return the share of the calls' time with Python samples in `empty_cache`, and the line that called it."""
    frames = FrameTable.of(report)
    functions, code_of_function = frames.texts("function")
    within = nearest(
        frames.parent,
        np.array([name.rpartition(".")[2] == "empty_cache" for name in functions] + [False])[
            code_of_function
        ],
    )
    threads = ", ".join(str(thread) for thread in np.unique(some.thread).tolist())
    samples = report.sql(
        f"""SELECT "start", "end", stack, "count" FROM samples WHERE kind = 'python' AND thread IN ({threads})"""
    )
    position = frames.positions(samples.column("stack"))
    start, end = numbers(samples, "start"), numbers(samples, "end") + 1
    # of the ticks of a row, those while a call went on
    time = numbers(samples, "count") * Cover(some.start, some.end).within(start, end) / (end - start)
    inside = within[position] >= 0
    if not inside.any():
        return 0.0, ""
    best = int(np.argmax(np.where(inside, time, -1)))
    return float(time[inside].sum() / max(float(time.sum()), 1.0)), own_line(frames.path(int(position[best])))


def _frees(some: HostCalls) -> BoolArray:
    return np.array(["Free" in name for name in some.name], bool)


def _bursts(some: HostCalls) -> tuple[int, int]:
    """Return how often a thread freed at least three times in a row and then allocated.

    And the calls that freed.
    """
    bursts = calls_of = 0
    frees = _frees(some)
    for thread in np.unique(some.thread).tolist():
        own = frees[some.thread == thread]
        ends = np.flatnonzero(np.diff(own.astype(np.int8), prepend=0, append=0))
        for low, high in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True):
            if high - low >= _BURST and high < len(own):
                bursts, calls_of = bursts + 1, calls_of + high - low
    return bursts, calls_of


def _steady(allocations: HostCalls, devices: tuple[GpuOperations, ...], warm_up: float) -> BoolArray:
    """Return which calls came in the steady state of a process that goes on to allocate there."""
    mine = np.zeros(len(allocations), bool)
    for process in {gpu.process for gpu in devices}:
        own = [gpu for gpu in devices if gpu.process == process]
        begin, end = min(gpu.begin for gpu in own), max(gpu.finish for gpu in own)
        since = begin + int((end - begin) * warm_up)
        inside = (allocations.process == process) & (allocations.start >= begin) & (allocations.start < end)
        some = inside & (allocations.start >= since)
        parts = (allocations.start[some] - since) * _PARTS // max(end - since, 1)
        if len(np.unique(parts)) < _SPREAD:
            continue
        early = np.count_nonzero(inside) - np.count_nonzero(some)
        mine |= some if early * (1 - warm_up) > _DENSER * np.count_nonzero(some) * warm_up else inside
    return mine


def _pools(report: Report) -> list[Finding]:
    """Note allocations that take most of a GPU's memory."""
    rows = report.sql(
        f"""SELECT m.id, m.process, m.device, m."start", m.bytes, d.memory FROM gpu_memory m JOIN devices d USING (process, device)
            WHERE m.operation = 'allocate' AND m.kind = 'Device' AND d.memory > 0 AND m.bytes >= {_POOL} * d.memory
            ORDER BY m."start" """
    ).to_pylist()
    findings = []
    for row in rows:
        start, device = row["start"], row["device"]
        text = f"{size(row['bytes'])} of {size(row['memory'])}"
        findings.append(
            Finding(
                rule="allocator_churn",
                subject=f"GPU {device} preallocated",
                title=f"The program took {percent(row['bytes'] / row['memory'])} of GPU {device}'s memory at once",
                cause=f"{text} were allocated in one piece: a pool, as JAX and TensorFlow make one. It costs nothing, but the table "
                "gpu_memory does not show how much the program needs.",
                fix="Nothing, unless other programs need the memory: XLA_PYTHON_CLIENT_MEM_FRACTION, or "
                "XLA_PYTHON_CLIENT_PREALLOCATE=false.",
                evidence=(
                    Evidence(
                        table="gpu_memory",
                        id=row["id"],
                        start=start,
                        end=start,
                        text=text,
                        process=row["process"],
                        device=device,
                        values={"bytes": row["bytes"]},
                    ),
                ),
                occurrences=1,
                link="https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
            )
        )
    return findings
