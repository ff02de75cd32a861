"""Long gaps in which a GPU was idle.

## What it looks for
For each GPU of each process, gaps longer than 500 ms between its first and its last operation. Time
that the recording or the driver itself took (table `overhead`) does not count. Identical to nsys's
rule of this name.

## Why it costs time
The GPU is the expensive part of the machine, and nothing used it during these gaps.

## What to do
Find out what the host did in the gaps: the rule `gpu_waits_for_cpu` shows it, for much shorter
gaps, too. Typical causes are data loading, writing of checkpoints, evaluation on the host, and
compilation.

## When it does not apply
If the program had no work for the GPU, e.g. a server between requests. If another process used the
GPU during the gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Finding, most
from warplens.rules.gpus import gpus, merged

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html"


def check(report: Report, selection: Selection, *, rows: int = 50, gap: float = 500) -> list[Finding]:
    """Return a finding of the GPUs with such gaps.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of gaps kept as evidence.
        gap: minimum length of a gap, ms.
    """
    findings = []
    for gpu in gpus(report, selection):
        where = f"process = {gpu.process} AND {during(report, selection)}"
        own = report.sql(f'SELECT "start", "end" FROM overhead WHERE {where}')
        idle = gpu.idle.without(Cover(own.column(0).to_numpy(), own.column(1).to_numpy()))
        long = idle.end - idle.start > gap * 1e6
        start, end = idle.start[long], idle.end[long]
        if not len(start):
            continue
        lost, whole = int((end - start).sum()), gpu.finish - gpu.begin
        order = (end - start).argsort()[::-1][:rows]
        finding = Finding(
            rule="gpu_gaps",
            subject=gpu.label,
            title=f"{gpu.label} did nothing for {duration(lost)}, in {counted(len(start), 'long gap')}",
            cause=f"Between its first and its last operation, which are {duration(whole)} apart, it had nothing to do in {len(start):,} "
            f"stretches of more than {duration(gap * 1e6)}: {percent(lost / whole, 1)} of the "
            "time. The longest is "
            f"{duration(int((end - start).max()))}.",
            fix="Find out what the host did in these gaps: `warplens analyze -r gpu_waits_for_cpu`, "
            "or record with --sample=process-tree "
            "and NVTX ranges.",
            evidence=most((gpu.gap(int(start[place]), int(end[place])) for place in order), rows),
            occurrences=len(start),
            bound=lost,
            confidence="high",
            claim=Cover(start, end),
        )
        findings.append((finding, Cover(start, end)))
    return merged(findings, rows)
