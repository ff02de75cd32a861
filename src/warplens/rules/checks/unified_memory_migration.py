"""Managed memory that host and GPU touch in turn: its pages migrate, and kernels wait for them.

## What it looks for
Programs with managed memory (`cudaMallocManaged`). A launch is slow if it takes at least three
times as long as other launches of the kernel on the same grid, and either pages moved to its GPU
during it, or it was the first one after a pause in which the host worked. There must be at least
three slow launches. If migrations were recorded, the finding states their size and number. If every
launch of a kernel waits, recorded migrations and GPU faults show for how long.

## Why it costs time
A page that the host touched is in host memory. A kernel that touches it stops in a fault until the
page has moved, in pieces of 4 KiB to 2 MiB: a few GB/s, compared with 25 to 55 for a copy. When the
host touches it again, the page moves back in the same way.

## What to do
Move pages ahead of time and together: `cudaMemPrefetchAsync` to the GPU before the kernels, and
back before the host reads; `cudaMemAdvise` for data that one side only reads. Or keep the data on
the GPU (`cudaMalloc`) and copy the part that the host needs to page-locked memory. Or let the GPU
do the host's work in between.

## When it does not apply
If the slow launches do more work than the others: launches of a kernel on one grid are assumed to
do the same. If the GPU's memory is too small, so that pages must move anyway. If the machine shares
page tables (Grace Hopper), pages need not move. The estimate assumes that pages take 1.3 times as
long to the host as to the GPU, at most the pause before a launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration, size
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.gpus import MIGRATION, GpuOperations, gpus, merged, span
from warplens.rules.hosts import edges, numbers

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#unified-memory-programming"
_PAUSE = 20_000  # ns without work of the GPU, in which the host may have touched memory
_SLOWER = 3  # times as long as usual
# Times as long as the way to the GPU: an H200 whose host did nothing but touch 16 MiB waited 5.8 ms, the kernels 4.4 ms.
_BACK = 1.3
_ALLOCATES = "regexp_matches(name::VARCHAR, '^(cuda|cu|hip)(Malloc|MemAlloc)Managed')"


@dataclass(frozen=True, eq=False)
class _Slow:
    """Slow launches of one GPU, by start.

    `longer`: than usual, `pause`: how long the GPU had had nothing to do before, ns.

    `compared`: with other launches of the same kernel; else by what was recorded of pages.
    """

    id: Int64Array
    start: Int64Array
    end: Int64Array
    name: list[str]
    longer: Int64Array
    pause: Int64Array
    compared: bool


def check(
    report: Report, selection: Selection, *, rows: int = 50, fewest: int = 3, least: float = 1
) -> list[Finding]:
    """Return a finding of the GPUs whose kernels waited for pages.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of launches kept as evidence.
        fewest: minimum number of slow launches of a kernel.
        least: percent of the judged time by which kernels must have taken longer than usual, in
            total.
    """
    devices = gpus(report, selection)
    if not report.tables["cuda_api"] and not report.tables["um_events"]:
        raise MissingData("does not distinguish managed memory.")
    managed = (
        f"SELECT DISTINCT process FROM cuda_api WHERE {_ALLOCATES} UNION SELECT DISTINCT process "
        "FROM um_events"
    )
    processes = set(report.sql(managed).column(0).to_pylist())
    begin, end = edges(report, selection)
    findings = []
    for gpu in devices:
        if gpu.process not in processes:
            continue
        slow = _slow(report, selection, gpu, fewest=fewest)
        lost = int(np.clip(np.minimum(slow.end, end) - np.maximum(slow.start, begin), 0, slow.longer).sum())
        if not len(slow.id) or lost * 100 < least * span(report, selection):
            continue
        findings.append(_finding(report, gpu, slow, lost=lost, window=(begin, end), rows=rows))
    return merged(findings, rows)


def _slow(report: Report, selection: Selection, gpu: GpuOperations, fewest: int) -> _Slow:
    """Return the launches that took longer because of pages."""
    shape = ", ".join(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
    kernels = report.sql(
        f"""SELECT id, "start", "end", name::VARCHAR AS name, dense_rank() OVER (ORDER BY demangled::VARCHAR, {shape}) - 1 AS kind
            FROM kernels WHERE process = {gpu.process} AND device = {gpu.device} AND {during(report, selection)} ORDER BY "start" """
    )
    start, end, kind, ids = (numbers(kernels, name) for name in ("start", "end", "kind", "id"))
    length = end - start
    pause = _pauses(gpu, start)
    # the first kernel of all counts, too: the host filled what it works on
    waited = (pause >= _PAUSE) | (start == start[:1]) | (gpu.cover(MIGRATION).within(start, end) > 0)
    inside = _pages(report, selection, gpu).within(start, end)
    longer = np.zeros(len(start), np.int64)
    compared = False
    order = np.argsort(kind, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(order) else ():
        # Launches of one kernel and shape are compared: those after a pause of the host with the
        # median of the others. A launch counts if it took _SLOWER times as long, and a kind if at
        # least half of its waiting launches did.
        usual = length[some][~waited[some]]
        if len(usual) < fewest:  # none to compare with: what was recorded of pages says how long it waited
            if (inside[some] > 0).sum() >= fewest:
                longer[some] = inside[some]
            continue
        median = int(np.median(usual))
        high = waited[some] & (length[some] >= _SLOWER * median)
        if high.sum() >= fewest and 2 * high.sum() >= waited[some].sum():
            longer[some[high]] = length[some[high]] - median
            compared = True
    kept = np.flatnonzero(longer)
    return _Slow(
        ids[kept],
        start[kept],
        end[kept],
        name=kernels.column("name").take(kept).to_pylist(),
        longer=longer[kept],
        pause=np.maximum(pause[kept], 0),
        compared=compared,
    )


def _pages(report: Report, selection: Selection, gpu: GpuOperations) -> Cover:
    """Return when pages moved to a GPU or it waited in a fault, as far as that was recorded."""
    moves = report.sql(
        f"""SELECT "start", "end" FROM um_events WHERE process = {gpu.process} AND device = {gpu.device}
            AND kind IN ('HtoD', 'GPU page fault') AND {during(report, selection)}"""
    )
    return Cover(numbers(moves, "start"), numbers(moves, "end"))


def _pauses(gpu: GpuOperations, start: Int64Array) -> Int64Array:
    """Return for how long (ns) the GPU had had nothing to do before each kernel.

    -1: another one ran. Migrations and faults are no work.
    """
    work = Cover(gpu.start[gpu.kind != MIGRATION], gpu.end[gpu.kind != MIGRATION])
    if not len(work.start):  # kernels that last no time
        return np.full(len(start), -1)
    idle = np.append(0, work.start[1:] - work.end[:-1])
    place = np.minimum(np.searchsorted(work.start, start), len(work.start) - 1)
    return np.where(work.start[place] == start, idle[place], -1)


def _finding(
    report: Report, gpu: GpuOperations, slow: _Slow, lost: int, window: tuple[int, int], rows: int
) -> tuple[Finding, Cover]:
    # In the pause the host waited for its pages: no fix wins more than both.
    cover = Cover(
        np.maximum(slow.start - slow.pause, window[0]), np.minimum(slow.start + slow.longer, window[1])
    )
    back = int(np.minimum(_BACK * slow.longer, slow.pause)[1:].sum())
    name = max(
        dict.fromkeys(slow.name),
        key=lambda kind: sum(int(n) for n, of in zip(slow.longer, slow.name, strict=True) if of == kind),
    )
    moved = report.sql(
        f"""SELECT kind::VARCHAR AS kind, count(*) AS pieces, sum(bytes)::BIGINT AS bytes FROM um_events
            WHERE process = {gpu.process} AND device = {gpu.device} AND kind IN ('HtoD', 'DtoH') GROUP BY kind ORDER BY kind DESC"""
    ).to_pylist()
    pages = "; ".join(
        f"{size(row['bytes'] or 0)} moved to the {'GPU' if row['kind'] == 'HtoD' else 'host'} in "
        f"{counted(row['pieces'], 'piece')}"
        for row in moved
    )
    launches = zip(
        slow.id.tolist(), slow.start.tolist(), slow.end.tolist(), slow.name, slow.longer.tolist(), strict=True
    )
    evidence = (
        Evidence(
            table="kernels",
            id=row,
            start=begin,
            end=end,
            text=text,
            process=gpu.process,
            thread=None,
            device=gpu.device,
            values={"longer_ns": longer},
        )
        for row, begin, end, of, longer in launches
        for text in (f"{of} took {duration(longer)} longer for its pages",)
    )
    compared = (
        f"took at least {_SLOWER} times as long as other launches of the same kernels, each after "
        "the host had had its turn."
        if slow.compared
        else "waited for pages in each launch: none of them met its pages on the GPU."
    )
    finding = Finding(
        rule="unified_memory_migration",
        subject=gpu.label,
        title=f"Kernels on managed memory took {duration(lost)} longer because pages had to come from "
        "the host",
        cause=f"{counted(len(slow.id), 'launch')}, most of all of {name}, {compared}{f' {pages}.' if pages else ''} "
        f"Before the slow ones the GPU had nothing to do for {duration(int(slow.pause.sum()))}, in "
        "which pages went back to the host.",
        fix="Prefetch the pages (cudaMemPrefetchAsync) to their next user, or use cudaMalloc and "
        "copy the data that the host needs."
        + ("" if pages else " --cuda-um-migrations records how much moves."),
        evidence=most(evidence, rows),
        occurrences=len(slow.id),
        bound=cover.total,
        estimate=min(
            max(lost - int(slow.longer[0]), 0) + back, cover.total
        ),  # the pages have to come over once
        confidence="high" if pages else "medium",
        claim=cover,
    )
    return finding, cover
