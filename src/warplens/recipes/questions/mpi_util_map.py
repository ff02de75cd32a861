"""Time that each rank spent in calls of MPI, over time, as a heat map.

## What it asks
The share of time in which some thread of each rank was in a call of MPI, in percent, for each of
`:bins=60` equal stretches of time; with `:kind=p2p`, `collective` or `wait`, in calls of that kind.

## How it is computed
Calls that overlap count once. Times are those of `gpu_time_util_map`.

## Traps
Time in a call of MPI is mostly waiting: the rank with the *least* of it is the one that the others wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.intervals import Cover
from warplens.errors import MissingData, UsageError
from warplens.model.words import counted, duration
from warplens.recipes import over_time
from warplens.recipes.base import Answer, Summary
from warplens.recipes.over_time import RankTrack
from warplens.report import Report

_KINDS = ("all", "p2p", "collective", "wait", "other")


def part(report: Report, *, kind: str = "all", bins: int = 60) -> Summary:
    """Return when the processes of one report were in MPI.

    Args:
        report: one rank's.
        kind: all, p2p, collective, wait or other.
        bins: pieces of time.
    """
    if kind not in _KINDS:
        raise UsageError(f"`:kind={kind}` is not known; there are: {', '.join(_KINDS)}.")
    over_time.check_bins(bins)
    calls = report.table("mpi_events", ["process", "kind", "start", "end"])
    if kind != "all":
        calls = calls.filter(pc.equal(calls.column("kind").cast(pa.string()), kind))
    if not calls.num_rows:
        raise MissingData("does not contain calls of MPI of this kind.")
    return {"processes": over_time.summarized(report, _tracks(report, calls))}


def answer(summary: Summary, *, kind: str = "all", bins: int = 60) -> Answer:
    """Draw the heat map, with a row for each process."""
    time_map = over_time.heat_map(summary["processes"], bins, "In MPI (%)")
    shown = time_map.shown
    mean = shown.values.mean(axis=1)
    least = int(mean.argmin())
    return Answer(
        [
            f"Calls of MPI ({kind}) of {counted(len(shown.rows), 'rank')}, {counted(bins, 'piece')} of {duration(time_map.bin_ns)}; "
            f"mean {mean.mean():.0f} % (least {shown.rows[least]}: {mean[least]:.0f} %)."
        ],
        maps={"map": shown},
        facts={
            "kind": kind,
            "bins": bins,
            "same_time": time_map.together,
            "mean_percent": float(mean.mean()),
        },
    )


def _tracks(report: Report, calls: pa.Table) -> Iterator[RankTrack]:
    at = over_time.edges(report)
    for process in sorted(set(calls.column("process").to_pylist())):
        own = calls.filter(pc.equal(calls.column("process"), process))
        cover = Cover(own.column("start").to_numpy(), own.column("end").to_numpy())
        yield RankTrack(process, None, over_time.busy(cover, at))
