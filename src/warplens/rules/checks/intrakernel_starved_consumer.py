"""Warps that compute wait for warps that load: a kernel's producer starves its consumer.

## What it looks for
Kernels whose warps have several roles (see the stat intrakernel_roles). A producer has a role or
regions named after loading (load, tma, copy, fetch, producer, …) and not after computing. A
consumer records its waits (wait, barrier, acquire, …). The rule measures, per SM, the time in which
a consumer waits while the producer works. If no region is named as a wait, or none as loading, the
rule does not judge.

## Why it costs time
Tensor cores are idle while their warps wait for data. A pipeline that is deep enough hides loading
behind computing; then the producer waits, for a free stage.

## What to do
Use more stages in flight, larger or fewer copies (TMA and multicast instead of cp.async, 16-byte
accesses), or a second producer warp. Start loading the next tile before the epilogue of the current
one. Use smaller tiles if shared memory limits the number of stages. Find what delays the producer
itself: `warplens stats -r intrakernel_sum:by=role,intrakernel_roles,intrakernel_overlap`.

## When it does not apply
If the wait is the latency of a block's first load, which no pipeline hides. If the memory bandwidth
limits the kernel. If a region named after loading does something else. If all roles wait, the data
is in flight, because a region around an asynchronous copy ends when the copy is issued: that time
does not count here. With `sample_blocks`, only some blocks are judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intrakernel.critical import role_times
from warplens.analysis.intrakernel.launches import launches, units
from warplens.analysis.intrakernel.roles import Roles, is_wait, roles, words
from warplens.analysis.intrakernel.starving import Starving
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Finding
from warplens.rules.kernels import bounded, cut, evidence, subject

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cutlass/latest/media/docs/cpp/pipeline.html"
_LOADS = {"producer", "load", "loads", "loader", "tma", "copy", "fetch", "prefetch", "gather", "dma"}
_COMPUTES = {
    "consumer",
    "mma",
    "wgmma",
    "compute",
    "computes",
    "gemm",
    "math",
    "dot",
    "softmax",
    "fma",
    "epilogue",
    "store",
}


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 5.0) -> list[Finding]:
    """Return a finding for each kernel whose consumers wait for its producers.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of launches kept as evidence.
        least: percent of the kernel's time in which SMs must be delayed, on average.
    """
    of = launches(report, selection)
    warps = units(report, of)
    known = roles(report, of, warps)
    producers = {role for role in range(len(known.names)) if _produces(known, role)}
    there = {known.names[role][0] for role in producers}
    consumers = {
        role
        for role, (group, _) in enumerate(known.names)
        if role not in producers and group in there and _waits(known, role)
    }
    if not consumers:
        raise MissingData(
            f"has no kernel with warps that load and others that record their waits{selection.place(report)}."
        )
    starving = Starving(warps, producers, consumers)
    times = role_times(report, of, warps, roles=known, starving=starving)
    most, mean = (cut(report, selection, of, costs=values) for values in starving.by_launch(of))
    span = cut(report, selection, of, costs=(of.end - of.start).astype(np.float64))
    findings = []
    for group in sorted({known.names[role][0] for role in consumers}):
        some = np.flatnonzero(of.group == group)
        own = mean[some].sum()
        if own < 1 or own < least / 100 * span[some].sum():
            continue
        name = subject(of, group)
        bound = bounded(report, selection, of, some=some, cost=float(most[some].sum()))
        feeds, starves = (
            ", ".join(known.names[role][1] for role in known.within(group) if role in these)
            for these in (producers, consumers)
        )
        waiting = [role for role in known.within(group) if role in consumers]
        waited = sum(times.wait[role] for role in waiting)
        part = waited / max(waited + sum(times.work[role] for role in waiting), 1)
        texts = (
            f"{name}: SMs held up for {duration(float(mean[at]))} on average, at most "
            f"{duration(float(most[at]))}"
            for at in some.tolist()
        )
        findings.append(
            Finding(
                rule="intrakernel_starved_consumer",
                subject=name,
                title=f"{starves} of {name} wait {duration(float(own))} while {feeds} loads",
                cause=f"In {counted(len(some), 'launch')} SMs were delayed for "
                f"{percent(own / max(span[some].sum(), 1))} of the time, on average, "
                f"with {starves} waiting and {feeds} at work; {starves} waited for {percent(part)} "
                "of what they recorded.",
                fix="More stages in flight, larger copies (TMA, multicast), a second producer warp, or "
                "loads that begin before the epilogue.",
                evidence=evidence(of, some, mean[some], texts=texts, rows=rows),
                occurrences=len(some),
                bound=bound,
                estimate=min(round(float(own)), bound),
                confidence="medium" if (of.sample_blocks[some] == 1).all() else "low",
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _produces(known: Roles, role: int) -> bool:
    name = known.names[role][1]
    own = words(name) & (_LOADS | _COMPUTES)
    if own:
        return own <= _LOADS
    does = set().union(*(words(tag) for tag in known.tags[role] if not is_wait(tag)))
    return bool(does & _LOADS) and not does & _COMPUTES


def _waits(known: Roles, role: int) -> bool:
    return any(is_wait(tag) for tag in known.tags[role]) and not all(is_wait(tag) for tag in known.tags[role])
