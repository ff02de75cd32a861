"""The legacy default stream makes the work of other streams wait.

## What it looks for
Kernels that were launched on a free stream, but began only when a kernel of the null stream ended;
and kernels of the null stream that began only when a kernel of another stream ended. Only kernels
count that would have fitted on the GPU together: each has at most half as many blocks as there are
multiprocessors. Streams that wait for events do not count, because their order may be intended.

## Why it costs time
The legacy default stream and other streams wait for each other, even if their work is independent.
Two streams of small kernels then run like one, and most of the GPU is idle.

## What to do
Give each stream its own work (`cudaStreamNonBlocking`, `torch.cuda.Stream`) and keep the default
stream empty, or compile with `--default-stream per-thread`. Order dependent work with events.

## When it does not apply
If the work of one stream needs the result of the other, and the program relies on the default
stream for the order. If each kernel uses the full memory bandwidth, two at once are no faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray, Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import KERNEL, GpuOperations, gpus, span
from warplens.rules.host_calls import needed
from warplens.rules.launches import KernelLaunches, launches

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-runtime-api/stream-sync-behavior.html"
_AT_ONCE = 10_000  # ns: work that begins this soon after other work ended has waited for it


def check(
    report: Report, selection: Selection, *, rows: int = 50, fewest: int = 10, least: float = 2.0
) -> list[Finding]:
    """Return a finding for each GPU on which that costs time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of kernels kept as evidence.
        fewest: minimum number of kernels that waited.
        least: percent of the judged time that their waits must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    nulls = _streams(
        report,
        """SELECT process, stream FROM streams WHERE kind = 'null'
           UNION SELECT process, null_stream AS stream FROM contexts WHERE null_stream IS NOT NULL""",
    )
    if not nulls:
        raise MissingData(f"does not identify the default stream{selection.place(report)}.")
    others = _streams(report, "SELECT process, stream FROM streams WHERE kind = 'default'") - nulls
    others -= _streams(
        report, "SELECT process, stream FROM syncs WHERE kind = 'Stream wait event' AND stream IS NOT NULL"
    )
    findings = []
    for gpu in devices:
        null, other = (
            np.isin(gpu.stream, [stream for process, stream in some if process == gpu.process])
            for some in (nulls, others)
        )
        if not null.any() or not other.any():
            continue
        small = _small(report, gpu)
        places, begin, end = _waited(gpu, launches(report), null & small, other=other & small)
        bound = Cover(begin, end).total
        if len(places) < fewest or bound == 0 or bound < span(report, selection) * least / 100:
            continue
        length = np.minimum(end - begin, (gpu.end - gpu.start)[places])
        order = np.argsort(begin - end, kind="stable")[:rows].tolist()
        findings.append(
            Finding(
                rule="single_stream",
                subject=gpu.label,
                title=f"The default stream made small kernels of other streams wait {duration(bound)} on {gpu.label}",
                cause=f"{counted(len(places), 'kernel')} had been launched on a free stream, but "
                "began only when a kernel of the legacy default stream ended, or the other way "
                "round. All were small enough to run at the same time.",
                fix="Create streams with cudaStreamNonBlocking and keep the default stream empty, or "
                "compile with --default-stream per-thread.",
                evidence=tuple(
                    _row(gpu, int(places[n]), begin=int(begin[n]), end=int(end[n])) for n in order
                ),
                occurrences=len(places),
                bound=bound,
                estimate=min(int(length.sum()), bound),
                confidence="low",
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _streams(report: Report, text: str) -> set[tuple[int, int]]:
    return {(row["process"], row["stream"]) for row in report.sql(text).to_pylist()}


def _small(report: Report, gpu: GpuOperations) -> BoolArray:
    """Return which operations are kernels with few blocks.

    At most half as many as there are multiprocessors; none where that is unknown.
    """
    text = f"""SELECT k.id FROM kernels k JOIN devices d USING (process, device) WHERE process = {gpu.process} AND device = {gpu.device}
               AND k.grid_x::BIGINT * k.grid_y * k.grid_z * 2 <= d.multiprocessors"""
    return np.asarray((gpu.kind == KERNEL) & np.isin(gpu.id, report.sql(text).column(0).to_numpy()), bool)


def _waited(
    gpu: GpuOperations, made: KernelLaunches, null: BoolArray, other: BoolArray
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the places of kernels that waited for one of the other side, and from when until when."""
    call, known = made.find(gpu.api)
    parts: list[tuple[Int64Array, Int64Array, Int64Array]] = []
    if not known.any():
        return (np.empty(0, np.int64),) * 3
    # `ready`: when a kernel could have begun: its launch had returned and the operation before it
    # in its stream had ended.
    free = np.full(len(gpu.start), np.iinfo(np.int64).min)  # when the stream had done what came before
    order = np.lexsort((gpu.start, gpu.stream))
    same = gpu.stream[order][1:] == gpu.stream[order][:-1]
    free[order[1:][same]] = gpu.end[order[:-1][same]]
    ready = np.maximum(made.end[call], free)
    for mine, theirs in ((other, null), (null, other)):
        places, before = np.flatnonzero(mine & known), np.flatnonzero(theirs)
        before = before[np.argsort(gpu.end[before], kind="stable")]
        last = (
            np.searchsorted(gpu.end[before], gpu.start[places], "right") - 1
        )  # of the other side, the last that had ended
        places, before_it = places[last >= 0], before[last[last >= 0]]
        begin, end = np.maximum(ready[places], gpu.start[before_it]), gpu.end[before_it]
        some = (gpu.start[places] - end <= _AT_ONCE) & (end > begin)
        parts.append((places[some], begin[some], end[some]))
    places, begin, end = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return places, begin, end


def _row(gpu: GpuOperations, place: int, begin: int, end: int) -> Evidence:
    text = f"kernel on stream {int(gpu.stream[place])} waited for the other stream"
    return Evidence(
        table="kernels",
        id=int(gpu.id[place]),
        start=begin,
        end=end,
        text=text,
        process=gpu.process,
        device=gpu.device,
    )
