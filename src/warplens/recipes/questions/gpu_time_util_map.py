"""GPU utilization of each rank over time, as a heat map.

## What it asks
The share of time, in percent, in which each GPU of each rank worked, for each of `:bins=60` equal
stretches of time. `:kind=compute`, `communication` or `memory` counts only that kind of work.

## How it is computed
Work that overlaps on one GPU counts once. If the reports overlap in time, their clocks are used, so
that one column is the same moment on all ranks. Otherwise times count from the start of each
report.

## Traps
Clocks of different hosts may differ by milliseconds: `straggler` shows by how much. A bin is the
whole time divided by the number of bins, so short gaps do not show; `gpu_idle_trace` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu import kernel_classes
from warplens.analysis.intervals import Cover
from warplens.errors import MissingData, UsageError
from warplens.model.words import counted, duration
from warplens.recipes import over_time
from warplens.recipes.base import Answer, Summary
from warplens.recipes.over_time import RankTrack
from warplens.report import Report

_KINDS = ("all", "compute", "communication", "memory")


def part(report: Report, *, kind: str = "all", bins: int = 60) -> Summary:
    """Return when the GPUs of one report worked.

    Args:
        report: report of one rank.
        kind: all, compute, communication or memory.
        bins: number of equal stretches of time.
    """
    if kind not in _KINDS:
        raise UsageError(f"`:kind={kind}` is unknown; choose from: {', '.join(_KINDS)}.")
    over_time.check_bins(bins)
    rows = over_time.summarized(report, _tracks(report, _work(report, kind)))
    if not rows.num_rows:
        raise MissingData("does not contain GPU work of this kind.")
    return {"gpus": rows}


def answer(summary: Summary, *, kind: str = "all", bins: int = 60) -> Answer:
    """Draw the heat map, with a row for each GPU."""
    time_map = over_time.heat_map(summary["gpus"], bins, "Busy (%)")
    shown = time_map.shown
    mean = shown.values.mean(axis=1)
    least = int(mean.argmin())
    return Answer(
        [
            f"{kind.capitalize()} GPU work of {counted(len(shown.rows), 'rank')}, {counted(bins, 'piece')} of "
            f"{duration(time_map.bin_ns)}; mean {mean.mean():.0f} % (least {shown.rows[least]}: {mean[least]:.0f} %)."
        ],
        maps={"map": shown},
        facts={
            "kind": kind,
            "bins": bins,
            "same_time": time_map.together,
            "mean_percent": float(mean.mean()),
        },
    )


def _tracks(report: Report, work: pa.Table) -> Iterator[RankTrack]:
    at = over_time.edges(report)
    places = zip(*(work.column(name).to_pylist() for name in ("process", "device")), strict=True)
    for process, device in sorted(set(places)):
        own = work.filter(
            pc.and_(pc.equal(work.column("process"), process), pc.equal(work.column("device"), device))
        )
        cover = Cover(own.column("start").to_numpy(), own.column("end").to_numpy())
        yield RankTrack(process, device, over_time.busy(cover, at))


def _work(report: Report, kind: str) -> pa.Table:
    columns = ["process", "device", "start", "end"]
    kernels = report.table("kernels", [*columns, "name"])
    communicates = pc.equal(kernel_classes.classes(kernels.column("name")).cast(pa.string()), "communication")
    parts = []
    if kind in ("all", "compute"):
        parts.append(kernels.filter(pc.invert(communicates)).select(columns))
    if kind in ("all", "communication"):
        parts.append(kernels.filter(communicates).select(columns))
    if kind in ("all", "memory"):
        parts += [report.table(name, columns) for name in ("memcpys", "memsets")]
    return pa.concat_tables(parts, promote_options="permissive").drop_null()
