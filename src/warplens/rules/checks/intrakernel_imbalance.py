"""Blocks of a kernel have unequal work: SMs that finish early wait for the last ones.

## What it looks for
Launches that recorded regions in all their blocks: how long SMs were out of work before the launch
ended, averaged over the SMs. The part that a last, partly filled wave of equal blocks explains does
not count (rule `intrakernel_tail_wave`).

## Why it costs time
A kernel ends with its slowest block. SMs that finish early have no more work of this kernel, and
the next kernel of the stream usually waits for all of it.

## What to do
Divide the work by cost instead of count: more and smaller blocks, the longest first. Split long
work (split-K, stream-K, split-KV for attention over sequences of different lengths). In a
persistent kernel, let blocks take tiles from a counter instead of a fixed list.
`warplens stats -r intrakernel_imbalance` lists the launches, `intrakernel_sum:by=sm` the regions of
slow SMs.

## When it does not apply
If another kernel fills the idle SMs, nothing is lost. If the recorder of a kernel begins late or
ends early, the kernel looks more or less even than it is. If a block is slow because its SM shares
memory or power with others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.model.words import counted, duration, percent
from warplens.rules.base import Finding
from warplens.rules.kernels import bounded, evidence, subject, uneven

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://arxiv.org/abs/2301.03598"


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 5.0) -> list[Finding]:
    """Return a finding for each kernel whose blocks are uneven.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of launches kept as evidence.
        least: percent of the kernel's time that unequal work must cost.
    """
    findings = []
    for group, of, even, some, lost, own in uneven(
        report, selection, lambda even: even.by_length, least=least
    ):
        bound = bounded(report, selection, of, some=some, cost=float(lost.sum()))
        name, span = subject(of, group), float(even.span[some].sum())
        worst = some[int(np.argmax(own))]
        texts = (
            f"{name}: SMs idle for {duration(even.lost[at])} of {duration(float(even.span[at]))} on average, the longest of "
            f"{counted(int(even.ctas[at]), 'block')} took {even.cta_most[at] / max(even.cta_mean[at], 1):.1f} times the mean"
            for at in some.tolist()
        )
        findings.append(
            Finding(
                rule="intrakernel_imbalance",
                subject=name,
                title=f"SMs wait {duration(float(own.sum()))} for slow blocks of {name}",
                cause=f"In {counted(len(some), 'launch')} SMs were out of work for "
                f"{percent(even.lost[some].sum() / max(span, 1))} of the time, on "
                f"average. In the worst the longest block took {duration(float(even.cta_most[worst]))}, the mean one "
                f"{duration(even.cta_mean[worst])}; the busiest SM worked "
                f"{even.busy_most[worst] / max(even.busy_mean[worst], 1):.2f} times as long as the average.",
                fix="Share the work out by cost: smaller blocks with the longest first, split-K or stream-K, or tiles from a counter in a "
                "persistent kernel. `warplens stats -r intrakernel_sum:by=sm` says which regions took longer there.",
                evidence=evidence(of, some, own, texts=texts, rows=rows),
                occurrences=len(some),
                bound=bound,
                estimate=min(round(float(own.sum())), bound),
                confidence="medium",
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))
