"""Communication between GPUs that no computation hides.

## What it looks for
Communication kernels (NCCL, RCCL, NVSHMEM, …, by name, and those that the framework calls
collectives) during which no other kernel ran on the same GPU. The finding names the operations and,
with named steps, the time per step. With several ranks in the report it separates waiting for the
last rank from data transfer.

## Why it costs time
A GPU that only communicates computes nothing: more ranks then gain less than they cost.
Communication kernels keep the GPU busy, so that its utilization looks good.

## What to do
Start communication earlier and keep computing. DDP reduces gradients in buckets during the backward
pass (`bucket_cap_mb`, `static_graph=True`). FSDP gathers the next layer ahead (`forward_prefetch`,
`backward_prefetch`, `limit_all_gathers`). Use `async_op=True`, and call `wait()` only when the
result is needed. Divide experts and tensor parallel layers into chunks. Communicate less:
accumulate gradients under `no_sync()`, send bfloat16, put tensor parallel ranks on one node. If
ranks wait for the last one, balance their work: see `collective_skew`.

## When it does not apply
If all of the computation needs the result first. Overlapping kernels share multiprocessors and
bandwidth, so that both take longer: the estimate ignores that. A report of one rank cannot
distinguish waiting from data transfer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.gpu.kernel_classes import class_of
from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence, Finding
from warplens.rules.collectives import keys_of, rank_names
from warplens.rules.collectives import together as collectives
from warplens.rules.gpus import GpuOperations, gpus, span, together
from warplens.rules.hosts import edges, numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design"
_KERNEL = re.compile(r"^(?:nccl|rccl)(?:Dev)?Kernel_?(?:Generic_)?([A-Za-z]+)")


@dataclass(frozen=True, eq=False)
class _Exposed:
    """One GPU: its kernels of communication (`rows`), how much of `each` nothing hid, and when (`cover`).

    `waiting`: what of that was before the last rank came. `computing`: for how long it computed with no communication beside, ns.
    """

    gpu: GpuOperations
    rows: pa.Table
    each: Int64Array
    cover: Cover
    waiting: Cover
    computing: int


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 2) -> list[Finding]:
    """Return one finding for all GPUs.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of operations kept as evidence.
        least: percent of the judged time in which communication must be exposed.
    """
    devices = gpus(report, selection)
    names = (
        report.sql(
            f"SELECT DISTINCT demangled::VARCHAR AS name FROM kernels WHERE {during(report, selection)}"
        )
        .column(0)
        .to_pylist()
    )
    known = [quoted(name) for name in names if class_of(name) == "communication"]
    condition = (
        f"(demangled::VARCHAR IN ({', '.join(known) or 'NULL'}) OR id IN (SELECT kernel FROM "
        "collectives WHERE kernel IS NOT NULL))"
    )
    late, last = _late(report, selection)
    exposed = [
        part
        for gpu in devices
        if (part := _exposed(report, selection, gpu, condition=condition, late=late)) is not None
    ]
    if not exposed:
        raise MissingData(f"does not contain communication between GPUs{selection.place(report)}.")
    bound = together([part.cover for part in exposed])
    if bound == 0 or bound * 100 < least * span(report, selection):
        return []
    return [_finding(report, selection, exposed, bound=bound, last=last, rows=rows)]


def _late(report: Report, selection: Selection) -> tuple[dict[int, int], str]:
    """Return when the last rank came to the collective of each kernel (ns), and the rank that was last most often."""
    try:
        known = collectives(report, selection)
    except MissingData:
        return {}, ""
    late = {
        kernel: last
        for last, kernels in zip(
            known.column("last").to_pylist(), known.column("kernels").to_pylist(), strict=True
        )
        for kernel in kernels
    }
    names = rank_names(report, keys_of(known))
    who, times = np.unique(np.array([names[key] for key in keys_of(known)]), return_counts=True)
    return late, str(who[int(np.argmax(times))]) if len(who) else ""


def _exposed(
    report: Report, selection: Selection, gpu: GpuOperations, condition: str, late: dict[int, int]
) -> _Exposed | None:
    on = f"process = {gpu.process} AND device = {gpu.device} AND {during(report, selection)}"
    own = report.sql(
        f"""SELECT id, "start", "end", name::VARCHAR AS name,
                   (SELECT any_value(c.name::VARCHAR) FROM collectives c WHERE c.kernel = k.id) AS operation
            FROM kernels k WHERE {on} AND {condition} ORDER BY "start" """
    )
    if not own.num_rows:
        return None
    begin, end = edges(report, selection)
    others = [
        report.sql(f'SELECT "start", "end" FROM {table} WHERE {on}{more}')
        for table, more in (("kernels", f" AND NOT {condition}"), ("graphs", ""))
    ]
    compute = Cover(
        *(
            np.clip(np.concatenate([numbers(part, edge) for part in others]), begin, end)
            for edge in ("start", "end")
        )
    )
    start, finish = np.maximum(numbers(own, "start"), begin), np.minimum(numbers(own, "end"), end)
    mine = Cover(start, finish)
    cover = mine.without(compute)
    last = np.array([late.get(kernel, 0) for kernel in own.column("id").to_pylist()], np.int64)
    waiting = Cover(start, np.clip(last, start, finish)).both(cover)
    return _Exposed(
        gpu,
        own,
        finish - start - compute.within(start, finish),
        cover=cover,
        waiting=waiting,
        computing=compute.without(mine).total,
    )


def _finding(
    report: Report, selection: Selection, exposed: list[_Exposed], bound: int, last: str, rows: int
) -> Finding:
    worst = max(exposed, key=lambda part: part.cover.total)
    whole = span(report, selection)
    sums: dict[str, int] = defaultdict(int)
    evidence = []
    for part in exposed:
        numbered = _steps(report, selection, part.gpu.process)
        order = np.argsort(-part.each, kind="stable")[:rows]
        for row, each in zip(part.rows.to_pylist(), part.each.tolist(), strict=True):
            sums[_operation(row)] += each
        for row, each in zip(part.rows.take(order).to_pylist(), part.each[order].tolist(), strict=True):
            # `numbered` has the starts of the steps: the number of steps that began by then, minus
            # 1, is the current one, and -1 is before the first.
            step = int(np.searchsorted(numbered, row["start"], "right")) - 1
            where = f"{part.gpu.label}, step {step}" if step >= 0 else part.gpu.label
            text = (
                f"{_operation(row)} on {where}: {duration(each)} of "
                f"{duration(row['end'] - row['start'])} not hidden"
            )
            evidence.append(
                Evidence(
                    table="kernels",
                    id=row["id"],
                    start=row["start"],
                    end=row["end"],
                    text=text,
                    process=part.gpu.process,
                    device=part.gpu.device,
                    values={"exposed_ns": each},
                )
            )
    evidence.sort(key=lambda row: (-row.values["exposed_ns"], row.start))
    every = sum(sums.values())
    best = sorted(sums, key=lambda name: -sums[name])
    shares = ", ".join(f"{name} {percent(sums[name] / max(every, 1))}" for name in best[:4])
    communicated = int((numbers(worst.rows, "end") - numbers(worst.rows, "start")).sum())
    steps_of = len(_steps(report, selection, worst.gpu.process))
    waits = max((part.waiting.total for part in exposed), default=0)
    apart = (
        f" Up to {duration(waits)} of it one GPU waited for the last rank to come, most often {last}."
        if waits
        else " The report does not say how much of it is waiting for other ranks."
    )
    in_steps = (
        f", {duration(worst.cover.total / steps_of)} in each of {counted(steps_of, 'step')}"
        if steps_of > 1
        else ""
    )
    own = max(min(part.cover.total - part.waiting.total, part.computing) for part in exposed)
    return Finding(
        rule="exposed_communication",
        subject="communication",
        title=f"Communication kept {'GPUs' if len(exposed) > 1 else 'the GPU'} from computing for {duration(bound)}, most of it {best[0]}",
        cause=f"By operation: {shares}. On {worst.gpu.label} {duration(worst.cover.total)} of "
        f"{duration(communicated)} of communication were "
        f"hidden by no kernel, {percent(worst.cover.total / whole, 1)} of the time{in_steps}.{apart}",
        fix=_advice(best[0]),
        evidence=tuple(evidence[:rows]),
        occurrences=sum(int((part.each > 0).sum()) for part in exposed),
        bound=bound,
        estimate=min(own, bound),
        confidence="medium" if last else "low",
        claim=Cover(
            *(np.concatenate([getattr(part.cover, edge) for part in exposed]) for edge in ("start", "end"))
        ),
    )


def _operation(row: dict[str, Any]) -> str:
    """Return what a kernel communicates: the framework's word, else NCCL's in its name."""
    if row["operation"]:
        return str(row["operation"])
    match = _KERNEL.match(row["name"])
    return match[1] if match else str(row["name"])


def _advice(operation: str) -> str:
    plain = operation.lower().replace("_", "")
    if "allreduce" in plain:
        return "Reduce during the backward pass (DDP's buckets), less often (no_sync), or in bfloat16."
    if "gather" in plain or "scatter" in plain:
        return (
            "Gather the next layer ahead (FSDP: forward_prefetch, backward_prefetch), larger layers in a "
            "unit, or shard over fewer ranks."
        )
    return (
        "Start it earlier and compute during it (async_op=True; wait only for the result), in "
        "chunks if everything waits for it."
    )


def _steps(report: Report, selection: Selection, process: int) -> Int64Array:
    """Return when the steps of a process began, ns."""
    try:
        known = steps(report, selection)
    except MissingData:
        return np.empty(0, np.int64)
    start = numbers(known, "start")
    return np.asarray(start[numbers(known, "process") == process], np.int64)
