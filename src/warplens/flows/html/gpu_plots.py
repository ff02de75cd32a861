"""Plots of GPUs over time: busy share, causes of idle time, used memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.analysis.gpu.idle import CAUSES, idle
from warplens.analysis.gpu.ops import at, during, operations
from warplens.analysis.intervals import union
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.flows.html.plots import Series, over_time, stacked
from warplens.flows.html.words import safe
from warplens.timeline.names import gpu_label

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_BUCKETS = 480
_MOST = 16  # GPUs, or lines


def utilisation(report: Report, selection: Selection) -> str:
    """Draw for each GPU which part of the time it did something."""
    names = device_names(report)
    rows = report.sql(
        f'SELECT process, coalesce(device, -1) AS device, "start", "end" FROM {operations()} WHERE {during(report, selection)} ORDER BY ALL'
    )
    columns = [np.asarray(rows.column(name).to_numpy(), np.int64) for name in rows.column_names]
    process, device, first, last = columns
    if not len(process):
        return ""
    begin, end = selection.window(report) or report.span
    out = []
    edges = np.flatnonzero(
        (np.diff(process, prepend=-1, append=-1) != 0) | (np.diff(device, prepend=-2, append=-2) != 0)
    )
    for left, right in list(pairwise(edges.tolist()))[:_MOST]:
        busy = shares(*union(first[left:right], last[left:right]), begin, end)
        name = names.get(
            (int(process[left]), int(device[left])),
            gpu_label(int(device[left]) if device[left] >= 0 else None, None),
        )
        whole = 100 * float(np.mean(busy))
        plot = over_time([Series(name, 100 * busy)], end - begin, "%", most=100.0, filled=True, height=70)
        out.append(f"<h3>{safe(name)}: busy {whole:.1f} % of the recording</h3>{plot}")
    left_out = len(edges) - 1 - _MOST
    return "".join(out) + (f'<p class="dim">… and {left_out} more GPUs</p>' if left_out > 0 else "")


def shares(first: Int64Array, last: Int64Array, begin: int, end: int) -> npt.NDArray[np.float64]:
    """Return the covered share of each bucket between `begin` and `end`.

    The intervals are sorted and do not overlap.
    """
    edges = np.linspace(begin, end, _BUCKETS + 1)
    # covered(t): the length of the intervals that began by t, minus what the last of them has
    # beyond t. For [0, 4) and [6, 9) at t = 8 that is 7 - 1 = 6. A bucket has the difference at its
    # edges.
    before = np.concatenate(([0], np.cumsum(last - first)))
    place = np.searchsorted(first, edges, side="right")
    inside = np.where(place > 0, np.maximum(last[np.maximum(place - 1, 0)] - edges, 0) if len(last) else 0, 0)
    covered = before[place] - np.where(place > 0, inside, 0)
    width = max((end - begin) / _BUCKETS, 1e-9)
    return np.clip(np.diff(covered) / width, 0, 1)


def idle_causes(report: Report, selection: Selection) -> str:
    """Draw for each GPU why it was idle."""
    try:
        rows = idle(report, selection)
    except MissingData:
        return ""
    if not rows.num_rows:
        return ""
    names = device_names(report)
    sums = (
        rows.append_column("took", _took(rows))
        .group_by(["process", "device", "cause"])
        .aggregate([("took", "sum")])
        .to_pylist()
    )
    causes: dict[tuple[int, int], dict[str, float]] = {}
    for row in sums:
        causes.setdefault((row["process"], row["device"]), {})[row["cause"]] = float(row["took_sum"])
    bars = [
        (
            names.get(key, gpu_label(key[1], None)),
            {cause: parts[cause] for cause in CAUSES if parts.get(cause)},
        )
        for key, parts in sorted(causes.items())[:_MOST]
    ]
    return stacked(bars, "ns")


def memory(report: Report, selection: Selection) -> str:
    """Draw the memory that the program had from CUDA, and what tensors had of it."""
    begin, end = selection.window(report) or report.span
    width = max((end - begin) // _BUCKETS, 1)
    lines = []
    names = device_names(report)
    for table, value, kind in (("gpu_memory", "total", "kind"), ("tensor_memory", "allocated", "'tensors'")):
        if not report.tables[table]:
            continue
        rows = report.sql(
            f"""SELECT process, device, {kind} AS kind, least(greatest(("start" - {begin}) // {width}, 0), {_BUCKETS - 1}) AS bucket,
                       max({value}) AS most, arg_max({value}, "start") AS last
                FROM {table} WHERE {value} IS NOT NULL AND {at(report, selection)} GROUP BY ALL ORDER BY ALL"""
        ).to_pylist()
        lines += _steps(rows, names)
    return over_time(lines[:_MOST], end - begin, "bytes")


def _steps(rows: list[dict[str, Any]], names: dict[tuple[int, int], str]) -> list[Series]:
    """Return what there was in each bucket: at most, or if nothing changed what there was before."""
    steps: dict[str, npt.NDArray[np.float64]] = {}
    for row in rows:
        device = (
            "CPU"
            if row["device"] is None
            else names.get((row["process"], row["device"]), f"GPU {row['device']}")
        )
        values = steps.setdefault(f"{device}: {row['kind'] or 'memory'}", np.full(_BUCKETS, np.nan))
        values[row["bucket"]] = row["most"]
        if row["bucket"] + 1 < _BUCKETS:
            values[row["bucket"] + 1] = row["last"]
    for values in steps.values():
        # The running maximum of the buckets with a value is the last such bucket: an empty bucket
        # repeats it.
        known = np.where(np.isnan(values), -1, np.arange(_BUCKETS))
        place = np.maximum.accumulate(known)
        values[:] = np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
    return [Series(name, values) for name, values in steps.items()]


def device_names(report: Report) -> dict[tuple[int, int], str]:
    """Return what each GPU of each process is called, with the rank or process if there are several."""
    processes = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "pid"]).to_pylist()
    }
    rows = report.table("devices", ["process", "device", "name"]).to_pylist()
    several = len({row["process"] for row in rows}) > 1
    names = {}
    for row in rows:
        owner = processes.get(row["process"], {})
        rank = owner.get("rank")
        where = (f"rank {rank}: " if rank is not None else f"{owner.get('pid')}: ") if several else ""
        names[row["process"], row["device"]] = where + gpu_label(row["device"], row["name"])
    return names


def _took(rows: Any) -> Any:
    import pyarrow.compute as pc

    return pc.subtract(rows.column("end"), rows.column("start"))
