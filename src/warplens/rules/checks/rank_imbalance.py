"""Ranks have unequal work in a step: the step takes as long as the slowest rank.

## What it looks for
Named steps of at least two ranks that communicate: NVTX ranges such as `step`, or PyTorch's
`ProfilerStep#N`. For each step and rank, the rule sums the GPU's compute and copy time for launches
of the step, without communication. A rank with 5 % more than the mean of all ranks is reported. The
finding says whether it ran more kernels than the others, or took longer for the same ones.

## Why it costs time
In each step, ranks exchange their results, and all wait for the last one. If one rank computes
longer, all others wait that long; on them it looks like communication.

## What to do
More kernels or more data on one rank: balance by cost instead of count (sequences by length,
experts by tokens, pipeline stages by layers), and distribute logging, saving and evaluation. The
same kernels, but slower: check clocks, heat, other programs on that GPU, and the PCIe slot.

## When it does not apply
If the ranks do not wait for each other in each step. If the others have other work to do while they
wait. If only a few steps were recorded, their load differs by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.kernel_classes import class_of
from warplens.analysis.step_functions import grouped_union
from warplens.analysis.steps.steps import base_name, steps
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.collectives import rank_names
from warplens.rules.gpus import gpus, span
from warplens.rules.hosts import capital, numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/ddp.html"
_FEW = 3  # steps up to which chance may have made it


def check(
    report: Report, selection: Selection, *, rows: int = 50, more: float = 5, least: float = 2
) -> list[Finding]:
    """Return a finding where one rank has more work than the others.

    Args:
        report: the report.
        selection: the part to use; steps that overlap it count in full.
        rows: maximum number of steps kept as evidence.
        more: percent above the mean that the rank with most work must have.
        least: percent of the judged time that balancing must be able to save.
    """
    gpus(report, selection)
    known = steps(report, selection)
    names = report.sql("SELECT DISTINCT demangled::VARCHAR AS name FROM kernels").column(0).to_pylist()
    between = ", ".join(quoted(name) for name in names if class_of(name) == "communication") or "NULL"
    of = (
        f"SELECT process FROM kernels WHERE demangled::VARCHAR IN ({between}) UNION SELECT process "
        "FROM collectives"
    )
    ranks = sorted(set(report.sql(of).column(0).to_pylist()) & set(numbers(known, "process").tolist()))
    if len(ranks) < 2:
        raise MissingData(
            f"does not contain steps of several ranks that communicate{selection.place(report)}."
        )
    of_rank = [known.filter(numbers(known, "process") == process) for process in ranks]
    number = min(own.num_rows for own in of_rank)
    work = np.zeros((len(ranks), number), np.int64)
    kernels = np.zeros((len(ranks), number), np.int64)
    for place, (process, own) in enumerate(zip(ranks, of_rank, strict=True)):
        work[place], kernels[place] = _work(report, process, own.slice(0, number), between=between)
    worst = int(np.argmax(work.sum(axis=1)))
    mean, high = work.mean(axis=0), work.max(axis=0)
    bound, estimate = int((high - work.min(axis=0)).sum()), int((high - mean).sum())
    whole = span(report, selection)
    above = float(work[worst].sum() / max(mean.sum(), 1.0) - 1)
    if above * 100 < more or estimate * 100 < least * whole:
        return []
    return [
        _finding(
            report,
            ranks,
            of_rank[worst],
            work=work,
            kernels=kernels,
            worst=worst,
            bound=min(bound, whole),
            estimate=min(estimate, whole),
            rows=rows,
        )
    ]


def _work(report: Report, process: int, own: pa.Table, between: str) -> tuple[Int64Array, Int64Array]:
    """Return the GPU time (ns) of a process's launches in each step, and its number of kernels.

    Without communication.
    """
    ran = report.sql(
        f"""SELECT o."start", o."end", coalesce(a."start", o."start") AS called, o.kernel FROM (
              SELECT "start", "end", api, true AS kernel FROM kernels WHERE process = {process} AND demangled::VARCHAR NOT IN ({between})
                AND id NOT IN (SELECT kernel FROM collectives WHERE kernel IS NOT NULL)
              UNION ALL SELECT "start", "end", api, false FROM memcpys WHERE process = {process}
              UNION ALL SELECT "start", "end", api, true FROM graphs WHERE process = {process}
            ) o LEFT JOIN cuda_api a ON o.api = a.id"""
    )
    first, last, called = numbers(own, "start"), numbers(own, "end"), numbers(ran, "called")
    step = np.searchsorted(first, called, "right") - 1
    kept = (step >= 0) & (called < last[np.maximum(step, 0)])
    is_kernel = np.asarray(ran.column("kernel").to_numpy(), bool)
    work = grouped_union(
        step[kept], numbers(ran, "start")[kept], numbers(ran, "end")[kept], groups=own.num_rows
    )
    return work, np.bincount(step[kept & is_kernel], minlength=own.num_rows)


def _finding(
    report: Report,
    ranks: list[int],
    own: pa.Table,
    work: Int64Array,
    kernels: Int64Array,
    worst: int,
    bound: int,
    estimate: int,
    rows: int,
) -> Finding:
    keys = [(process, None) for process in ranks]
    name = rank_names(report, keys)[ranks[worst], None]
    number = work.shape[1]
    mean = work.mean(axis=0)
    above = work[worst].sum() / mean.sum() - 1
    times = int((np.argmax(work, axis=0) == worst).sum())
    others = np.delete(kernels.sum(axis=1), worst).mean()
    more = kernels[worst].sum() / others - 1 if others else 0.0
    why = (
        f"It ran {percent(more)} more kernels than the others"
        if 2 * more > above
        else "It ran about as many kernels as the others, each for longer"
    )
    longer = work[worst] - mean
    evidence = most(
        (
            Evidence(
                table="nvtx_ranges",
                id=row["range"],
                start=row["start"],
                end=row["end"],
                text=f"{row['name']}: {duration(int(work[worst][at]))} of work on {name}, {duration(float(mean[at]))} on average",
                process=row["process"],
                thread=row["thread"],
                values={"work_ns": int(work[worst][at]), "longer_ns": round(float(longer[at]))},
            )
            for at, row in enumerate(own.slice(0, number).to_pylist())
        ),
        rows,
    )
    return Finding(
        rule="rank_imbalance",
        subject=base_name(own.column("name")[0].as_py()),
        title=f"{capital(name)} has {percent(above)} more work in its steps than the {counted(len(ranks), 'rank')} on average",
        cause=f"Its GPU computed and copied for {duration(work[worst].sum() / number)} in a step, those of all ranks for "
        f"{duration(mean.mean())} on average. It had most work in {times} of "
        f"{counted(number, 'step')}. {why}. With equal work on all "
        f"ranks a step would be {duration(estimate / number)} shorter.",
        fix=f"Balance the work of {name} with the others by its cost: sequence lengths, experts, "
        "pipeline stages, work that only one rank does.",
        evidence=evidence,
        occurrences=number,
        bound=bound,
        estimate=estimate,
        confidence="medium" if number >= _FEW else "low",
    )
