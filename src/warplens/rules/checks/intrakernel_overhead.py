"""Recording inside a kernel took too much of its time, or lost too many records, to trust its regions.

## What it looks for
For each kernel, the number of records of its warps times the maximum cost of one (`:cost=`, 40 ns
on Hopper), compared with the time of these warps. Also records that were dropped because the buffer
had no free slots, and warps that had no place in it.

## Why it costs time
A region costs two readings of the timer and one store, in the recording warp. If regions are nearly
as short as that, the kernel is slower than without them, and short regions look longer than they
are. Sums over dropped records are too small.

## What to do
Put regions around larger pieces of code, remove the innermost ones, record only some warps
(`warps=`) or blocks (`sample_blocks=`), and allocate as many slots as the finding says.
`enabled=False` builds the kernel without recording, for comparison.

## When it does not apply
If the warps wait anyway, they record for free: the cost is an upper bound, not a measurement of
this kernel. If the GPU is not a Hopper, the cost differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intrakernel.launches import launches, units
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Finding
from warplens.rules.kernels import bounded, cut, evidence, subject

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/parallel-thread-execution/#special-registers-globaltimer"


def check(
    report: Report, selection: Selection, *, rows: int = 50, cost: float = 40.0, least: float = 5.0
) -> list[Finding]:
    """Return a finding for each kernel whose recording is not to be trusted.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of launches kept as evidence.
        cost: maximum cost of a record, ns.
        least: percent of the warps' time that recording may take.
    """
    of = launches(report, selection)
    warps = units(report, of)
    number = len(of)
    records = np.bincount(warps.launch, (warps.events + warps.dropped).astype(np.float64), number)
    lived = np.bincount(warps.launch, (warps.end - warps.start).astype(np.float64), number)
    part = np.minimum(records * cost / np.maximum(lived, 1), 1.0)
    spent = cut(report, selection, of, costs=part * (of.end - of.start))
    findings = []
    for group in range(len(of.groups)):
        some = np.flatnonzero(of.group == group)
        name = subject(of, group)
        share = float(records[some].sum() * cost / max(lived[some].sum(), 1))
        bound = bounded(report, selection, of, some=some, cost=float(spent[some].sum()))
        if share * 100 >= least and bound > 0:
            texts = (
                f"{name}: {counted(round(records[at]), 'record')}, up to {percent(part[at])} of the time"
                for at in some.tolist()
            )
            findings.append(
                Finding(
                    rule="intrakernel_overhead",
                    subject=name,
                    title=f"Recording may have taken up to {duration(bound)} of {name}",
                    cause="Its warps wrote a record every "
                    f"{lived[some].sum() / max(records[some].sum(), 1):.0f} ns on average, and one takes "
                    f"up to {cost:g} ns: up to {percent(min(share, 1.0))} of their time. Its short "
                    "regions are shorter without.",
                    fix="Fewer and larger regions, or fewer warps (`warps=`) or blocks (`sample_blocks=`).",
                    evidence=evidence(of, some, spent[some], texts=texts, rows=rows),
                    occurrences=len(some),
                    bound=bound,
                    estimate=None,
                    confidence="low",
                )
            )
        missing = np.flatnonzero((of.group == group) & (of.dropped + of.units_lost > 0))
        if len(missing):
            dropped, lost = int(of.dropped[missing].sum()), int(of.units_lost[missing].sum())
            whole = dropped + float(warps.events[of.group[warps.launch] == group].sum())
            what = (
                [f"{counted(dropped, 'record')} ({percent(dropped / whole)}) found no slot"]
                if dropped
                else []
            )
            what += [f"{counted(lost, 'warp')} found no place in the buffer"] if lost else []
            slots = (
                f"allocate(…, slots={int(of.needed_slots[missing].max())}) holds all records"
                if dropped
                else ""
            )
            texts = (
                f"{name}: {_lost(int(of.dropped[at]), int(of.units_lost[at]))}" for at in missing.tolist()
            )
            findings.append(
                Finding(
                    rule="intrakernel_overhead",
                    subject=f"{name}: dropped records",
                    title=f"{name} recorded more than its buffer holds",
                    cause=f"In {counted(len(missing), 'launch')} {' and '.join(what)}: sums by tag are too small, "
                    "and the end of the kernel is missing.",
                    fix="; ".join(
                        filter(
                            None,
                            (
                                slots,
                                "units= for all warps that record" if lost else "",
                                "`Buffer.run` launches again with enough room",
                            ),
                        )
                    )
                    + ".",
                    evidence=evidence(
                        of,
                        missing,
                        (of.dropped + of.units_lost)[missing].astype(np.float64),
                        texts=texts,
                        rows=rows,
                    ),
                    occurrences=len(missing),
                )
            )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _lost(records: int, warps: int) -> str:
    parts = [f"{counted(records, 'record')} dropped"] * (records > 0) + [
        f"{counted(warps, 'warp')} without a place"
    ] * (warps > 0)
    return ", ".join(parts)
