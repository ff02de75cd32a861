"""The last wave of blocks fills only some of the SMs, and the others are idle.

## What it looks for
Launches that recorded regions in all their blocks and had more blocks than fit onto their SMs at
once (SMs that ran any, times the largest number of blocks on one at a time). The rule measures how
long SMs without a block of the last wave were idle, at most the length of an average block.

## Why it costs time
Blocks of equal length run in waves. 133 blocks on 132 SMs take twice as long as 132: one SM works,
all others wait.

## What to do
Choose the block size, or the number of splits, so that blocks fill whole waves. Make blocks
smaller, so that the last wave is a small part of the whole. Or launch as many blocks as fit, and
let each take tile after tile (a persistent kernel, stream-K).

## When it does not apply
If there are many waves of uneven blocks, there is no real last wave: the rule
`intrakernel_imbalance` measures the loss. If another kernel fills the idle SMs, nothing is lost.
SMs that ran no block do not count.
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
    """Return a finding for each kernel with a part-filled last wave.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of launches kept as evidence.
        least: percent of the kernel's time that the last wave must cost.
    """
    findings = []
    for group, of, even, some, lost, own in uneven(report, selection, lambda even: even.by_wave, least=least):
        bound = bounded(report, selection, of, some=some, cost=float(lost.sum()))
        name, span = subject(of, group), float(even.span[some].sum())
        waves = even.waves
        worst = int(some[int(np.argmax(own))])
        texts = (
            f"{name}: {counted(int(even.ctas[at]), 'block')} in {waves[at]:.2f} waves, SMs idle for {duration(even.lost[at])} of "
            f"{duration(float(even.span[at]))} on average"
            for at in some.tolist()
        )
        findings.append(
            Finding(
                rule="intrakernel_tail_wave",
                subject=name,
                title=f"SMs wait {duration(float(own.sum()))} for the last wave of {name}",
                cause=f"{counted(int(even.ctas[worst]), 'block')} ran on "
                f"{counted(int(even.sms[worst]), 'SM')}, {even.resident[worst]} on each "
                f"at a time: {waves[worst]:.2f} waves. The last one had {counted(int(even.last[worst]), 'block')}, and SMs were out of "
                f"work for {percent(even.lost[some].sum() / max(span, 1))} of the time, on average.",
                fix="Choose sizes that fill whole waves, make blocks smaller, or launch as many as fit and let them take tiles (persistent "
                "kernel, stream-K).",
                evidence=evidence(of, some, own, texts=texts, rows=rows),
                occurrences=len(some),
                bound=bound,
                estimate=min(round(float(own.sum())), bound),
                confidence="medium",
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))
