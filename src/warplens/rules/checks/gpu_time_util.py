"""Parts of the run in which a GPU was busy for less than half of the time.

## What it looks for
For each GPU of each process, the time from its first to its last operation, divided into 30 equal
chunks. The use of a chunk is the sum of its operations' durations, including the recording's own
overhead: it may exceed 100 % if operations overlap. Chunks below 50 % are reported, adjacent ones
together. Identical to nsys's rule of this name.

## Why it costs time
The GPU is the expensive part of the machine. The stated cost is the time in these chunks in which
it was idle.

## What to do
Find out what the host did in these chunks: the rules `gpu_waits_for_cpu`, `data_loader`,
`small_kernels` and `unneeded_sync` name the usual causes.

## When it does not apply
If another process uses the GPU, or the program has no work for it, nothing is lost. The rule only
measures time: a kernel on one of 132 multiprocessors counts like one on all, and so does a tiny
copy. A GPU that looks busy may still be badly used: check its metrics.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array
from warplens.model.words import duration, percent
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import TABLES, gpus, merged

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html"


def check(
    report: Report, selection: Selection, *, rows: int = 50, chunks: int = 30, threshold: float = 50
) -> list[Finding]:
    """Return a finding of the GPUs with such chunks.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of stretches kept as evidence.
        chunks: number of equal chunks.
        threshold: percent of use below which a chunk is reported.
    """
    findings = []
    for gpu in gpus(report, selection):
        own = report.sql(
            f'SELECT "start", "end" FROM overhead WHERE process = {gpu.process} AND {during(report, selection)}'
        )
        start, end = (
            np.concatenate((values, own.column(name).to_numpy()))
            for values, name in ((gpu.start, "start"), (gpu.end, "end"))
        )
        whole = gpu.finish - gpu.begin
        edges = gpu.begin + np.arange(chunks + 1) * whole // chunks
        used = np.diff(_spent_before(start, end, edges))
        low = used * 100 < threshold * np.diff(edges)
        idle = gpu.idle.within(edges[:-1], edges[1:])
        stretches = []
        for first, behind in pairwise(
            np.flatnonzero(np.diff(np.concatenate(([False], low, [False])).astype(np.int8))).tolist()
        ):
            if low[first]:
                share = used[first:behind].sum() / max(int(edges[behind] - edges[first]), 1)
                place = gpu.next(int(edges[first]))
                table, row = (
                    (TABLES[0], None) if place is None else (TABLES[gpu.kind[place]], int(gpu.id[place]))
                )
                text, values = (
                    f"{gpu.label} in use {percent(share, 1)}",
                    {"in_use_percent": round(100 * float(share), 1)},
                )
                stretches.append(
                    Evidence(
                        table=table,
                        id=row,
                        start=int(edges[first]),
                        end=int(edges[behind]),
                        text=text,
                        process=gpu.process,
                        device=gpu.device,
                        values=values,
                    )
                )
        if not stretches:
            continue
        lost = int(idle[low].sum())
        part = int(np.diff(edges)[low].sum())
        finding = Finding(
            rule="gpu_time_util",
            subject=gpu.label,
            title=f"{gpu.label} was in use for {percent(used[low].sum() / max(part, 1))} of {duration(part)}",
            cause=f"In {int(low.sum())} of {chunks} equal chunks of the time from its first to its last operation ({duration(whole)}) the "
            f"GPU was in use for less than {threshold:g} % of the time; it did nothing at all for "
            f"{duration(lost)} in them.",
            fix="Find out what the host did then: the rules gpu_waits_for_cpu, data_loader, "
            "small_kernels and unneeded_sync name the usual "
            "reasons.",
            evidence=tuple(sorted(stretches, key=lambda row: (row.start - row.end, row.start))[:rows]),
            occurrences=len(stretches),
            bound=lost,
            confidence="high",
            claim=(dry := gpu.idle.both(Cover(edges[:-1][low], edges[1:][low]))),
        )
        findings.append((finding, dry))
    return merged(findings, rows)


def _spent_before(start: Int64Array, end: Int64Array, times: Int64Array) -> Int64Array:
    """Return the sum of all operations' time before each time.

    Operations that run at once count each.
    """
    begun, ended = np.sort(start), np.sort(end)
    # what has begun counts up to the time, what has ended no further than its end
    since = _sums(begun, times)
    over = _sums(ended, times)
    return since - over


def _sums(ordered: Int64Array, times: Int64Array) -> Int64Array:
    """Return the sum of `time - t` over all t before each time."""
    # For [1, 4] and time 6 that is 5 + 2 = 2 * 6 - (1 + 4): prefix sums answer every time at once.
    number = np.searchsorted(ordered, times, "left")
    low = int(times[0])  # sums of times since then fit into 64 bits
    sums = np.concatenate(([0], np.cumsum(ordered - low)))
    return np.asarray(number * (times - low) - sums[number], np.int64)
