"""A counter of the GPUs of each rank over time, as a heat map.

## What it asks
The mean of one metric (`:metric=SM Active`, `GPU Utilization`, `Power`, …) of each GPU, for each of
`:bins=60` equal stretches of time. Without `:metric=`, the first of `SM Active`, `GPU Utilization` and
what else was recorded.

## How it is computed
A reading holds since the reading before. Metrics in percent are drawn from 0 to 100, others up to the
greatest value. Times are those of `gpu_time_util_map`.

## Traps
The counters are those of whole devices: other programs are in them, too. Two reports of one host show
the same GPUs twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.recipes import over_time
from warplens.recipes.base import Answer, Summary
from warplens.recipes.over_time import RankTrack
from warplens.report import Report

_FIRST = ("SM Active", "GPU Utilization")


def part(report: Report, *, metric: str = "", bins: int = 60) -> Summary:
    """Return one metric of the GPUs of one report.

    Args:
        report: one rank's.
        metric: its name; default: how busy the GPU was.
        bins: pieces of time.
    """
    over_time.check_bins(bins)
    rows = report.table("gpu_metrics", ["gpu", "metric", "unit", "start", "value"])
    there = sorted(set(rows.column("metric").cast(pa.string()).to_pylist()))
    if not there:
        raise MissingData("does not contain GPU metrics.")
    name = metric or next((name for name in _FIRST if name in there), there[0])
    rows = rows.filter(pc.equal(rows.column("metric").cast(pa.string()), name))
    if not rows.num_rows:
        raise MissingData(f"does not contain the metric {name!r}; it has: {', '.join(there)}.")
    unit = rows.column("unit").cast(pa.string())[0].as_py()
    named = pa.table({"metric": [name], "unit": [unit]})
    return {"gpus": over_time.summarized(report, _tracks(report, rows)), "metric": named}


def answer(summary: Summary, *, metric: str = "", bins: int = 60) -> Answer:
    """Draw the heat map, with a row for each GPU."""
    name, unit = (summary["metric"].column(column)[0].as_py() for column in ("metric", "unit"))
    time_map = over_time.heat_map(
        summary["gpus"], bins, f"{name} ({unit})" if unit else name, high=100.0 if unit == "%" else None
    )
    shown = time_map.shown
    mean = shown.values.mean(axis=1)
    least, most = int(mean.argmin()), int(mean.argmax())
    return Answer(
        [
            f"{name} of {counted(len(shown.rows), 'GPU')}, {counted(bins, 'piece')} of {duration(time_map.bin_ns)}; mean "
            f"{mean.mean():,.1f} {unit} (least {shown.rows[least]}: {mean[least]:,.1f}, greatest {shown.rows[most]}: {mean[most]:,.1f})."
        ],
        maps={"map": shown},
        facts={"metric": name, "unit": unit, "bins": bins, "same_time": time_map.together},
    )


def _tracks(report: Report, rows: pa.Table) -> Iterator[RankTrack]:
    at = over_time.edges(report)
    (process, *_) = report.table("processes", ["process"]).column("process").to_pylist()
    gpu, start = rows.column("gpu").to_numpy(), rows.column("start").to_numpy()
    value = np.nan_to_num(rows.column("value").to_numpy())
    for device in np.unique(gpu).tolist():
        own = np.flatnonzero(gpu == device)
        own = own[np.argsort(start[own], kind="stable")]
        yield RankTrack(process, device, over_time.held(start[own], value[own], at))
