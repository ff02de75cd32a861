"""Memory of the GPU that is allocated and freed again and again.

## What it looks for
Calls of `cudaMalloc`, `cudaFree` and their kin, page-locked memory of the host included, after the first fifth of the time in which the
GPU works, in at least three of ten equal parts of the rest. Stream-ordered allocation (`cudaMallocAsync`) is cheap, and not meant. One
allocation that takes most of a GPU's memory, as JAX and TensorFlow make it at their begin, is noted, without blame.

## Why it costs time
`cudaMalloc` takes up to a millisecond, page-locked memory more, and `cudaFree` waits until the GPU is done with everything: the host
launches nothing meanwhile, and the GPU runs dry.

## What to do
Allocate once, before the loop. Or use an allocator that keeps what it has: that of PyTorch (no `torch.cuda.empty_cache()` in the loop;
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` where sizes vary), `cudaMallocAsync` with a memory pool that keeps its memory, RMM.

## When it is wrong
Where the recording is so short that the program was still warming up. Where shapes change and memory is nearly full, PyTorch must free
blocks to get others: then the cure is less memory, not another allocator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.model.words import counted, duration, size
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import GpuOperations, gpus, span
from warplens.rules.host_calls import HostCalls, calls, cost, evidence, needed
from warplens.rules.lines import located

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"
_ALLOCATES = (
    r"regexp_matches(a.name, '^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree)(Host|Pitch|Managed|3D|Array|3DArray)?$"
    r"|^cuMem(Alloc|Free|HostAlloc)(Host|Pitch|Managed)?(_v[0-9]+)?$')"
)
_PARTS = 10
_POOL = 0.5  # share of a GPU's memory


def check(
    report: Report, selection: Selection, *, rows: int = 50, warm_up: float = 20, fewest: int = 10, least: float = 0.5
) -> list[Finding]:
    """Return a finding where allocation costs time, and one for each GPU whose memory was taken at once.

    Args:
        report: the report.
        selection: which part of it.
        rows: how many of the calls to keep as evidence.
        warm_up: percent of a process's time on the GPU in which it may allocate.
        fewest: calls after that.
        least: percent of the time looked at that they must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    allocations = calls(report, selection, _ALLOCATES)
    mine = _steady(allocations, devices, warm_up / 100)
    pools = _pools(report)
    if int(mine.sum()) < fewest:
        return pools
    spent = cost(allocations, devices, mine)
    if spent.bound == 0 or spent.bound < span(report, selection) * least / 100:
        return pools
    names, numbers = np.unique(allocations.name[mine].astype(str), return_counts=True)
    listed = ", ".join(f"{number:,} of {name}" for name, number in zip(names.tolist(), numbers.tolist(), strict=True))
    length = int((allocations.end - allocations.start)[mine].sum())
    number = int(mine.sum())
    return [
        Finding(
            "allocator_churn",
            "allocation in the loop",
            f"{counted(number, 'call')} that allocate or free memory after the warm-up took {duration(length)}",
            f"{listed}, spread over the run. The host launches nothing during these calls, and freeing waits for the GPU; afterwards "
            f"the GPU did nothing for {duration(spent.estimate)} that the host could have used to launch.",
            "Allocate before the loop, or through an allocator that keeps memory: PyTorch's (no empty_cache() in the loop; expandable "
            "segments where sizes vary), cudaMallocAsync with a pool, RMM.",
            located(report, evidence(allocations, spent, min(rows, number))),
            number,
            spent.bound,
            spent.estimate,
            "medium",
        ),
        *pools,
    ]


def _steady(allocations: HostCalls, devices: tuple[GpuOperations, ...], warm_up: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which calls came in the steady state of a process that goes on to allocate there."""
    mine = np.zeros(len(allocations), bool)
    for process in {gpu.process for gpu in devices}:
        own = [gpu for gpu in devices if gpu.process == process]
        begin, end = min(gpu.begin for gpu in own), max(gpu.finish for gpu in own)
        since = begin + int((end - begin) * warm_up)
        some = (allocations.process == process) & (allocations.start >= since) & (allocations.start < end)
        parts = (allocations.start[some] - since) * _PARTS // max(end - since, 1)
        if len(np.unique(parts)) >= 3:
            mine |= some
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
                "allocator_churn",
                f"GPU {device} preallocated",
                f"The program took {row['bytes'] / row['memory']:.0%} of GPU {device}'s memory at once",
                f"{text} were allocated in one piece: a pool, as JAX and TensorFlow make one. Nothing is lost by it, but the table "
                "gpu_memory does not tell what the program needs.",
                "Nothing, unless other programs need the memory: XLA_PYTHON_CLIENT_MEM_FRACTION, or XLA_PYTHON_CLIENT_PREALLOCATE=false.",
                (
                    Evidence(
                        "gpu_memory", row["id"], start, start, text, process=row["process"], device=device, values={"bytes": row["bytes"]}
                    ),
                ),
                1,
                link="https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
            )
        )
    return findings
