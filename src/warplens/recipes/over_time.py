"""Summaries of what each GPU or process did over time, and heat maps of ranks × time from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warplens.analysis.intervals import Cover
from warplens.arrays import Float64Array, Int64Array
from warplens.errors import UsageError
from warplens.recipes import ranks
from warplens.recipes.base import HeatMap
from warplens.report import Report

STRETCHES = 4096  # of time, in the summary of one row: enough for any screen
_MOST_BINS = 1000
_KINDS = {
    **dict.fromkeys(("process", "device", "rank", "begin", "end"), pa.int64()),
    "host": pa.string(),
    "values": pa.list_(pa.float32()),
}


@dataclass(frozen=True)
class RankTrack:
    """What one GPU or process did. `values`: mean of each of STRETCHES equal stretches of the report."""

    process: int
    device: int | None
    values: Float64Array


@dataclass(frozen=True)
class TimeMap:
    """A heat map of ranks × time. `together`: whether one column is one moment of all ranks."""

    shown: HeatMap
    bin_ns: float
    together: bool


def check_bins(bins: int) -> None:
    """Raise UsageError for a number of columns that cannot be drawn."""
    if not 1 <= bins <= _MOST_BINS:
        raise UsageError(f"`:bins={bins}`: 1 to {_MOST_BINS:,} pieces of time.")


def edges(report: Report) -> Int64Array:
    """Return the edges of the stretches of a report, ns."""
    return np.linspace(*report.span, STRETCHES + 1).astype(np.int64)


def busy(cover: Cover, at: Int64Array) -> Float64Array:
    """Return the percentage of each stretch that is covered."""
    share: Float64Array = np.asarray(100.0 * cover.within(at[:-1], at[1:]) / _stretch(at), np.float64)
    return share


def held(times: Int64Array, values: Float64Array, at: Int64Array) -> Float64Array:
    """Return the mean of each stretch of readings: a value holds since the reading before."""
    # `total[i]` is the integral up to reading i. Between two readings it is linear, as the value holds.
    length = np.diff(times, prepend=at[0])
    total = np.cumsum(values * length)
    known = np.append(at[0], times).astype(np.float64)
    mean: Float64Array = np.diff(np.interp(at, known, np.append(0.0, total))) / _stretch(at)
    return mean


def _stretch(at: Int64Array) -> float:
    """Return the length of a stretch, ns. It may be below 1: then `at` has equal edges, and stretches of 0."""
    return max(float(at[-1] - at[0]), 1.0) / STRETCHES


def summarized(report: Report, tracks: Iterable[RankTrack]) -> pa.Table:
    """Return a row for each track, with the columns of `ranks.PLACE`, the report's span and the values."""
    facts = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "host"]).to_pylist()
    }
    begin, end = report.span
    rows = [
        {
            "process": track.process,
            "device": track.device,
            "rank": facts.get(track.process, {}).get("rank"),
            "host": facts.get(track.process, {}).get("host"),
            "begin": begin,
            "end": end,
            "values": track.values,
        }
        for track in tracks
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(_KINDS.items())))


def heat_map(rows: pa.Table, bins: int, value: str, *, high: float | None = 100.0) -> TimeMap:
    """Return ranks × time. If the reports do not overlap in time, times count from the begin of each.

    `high`: the darkest shade's value; None: the greatest value.
    """
    number, names, _ = ranks.names_of(rows)
    rows = rows.take(pa.array(np.argsort(number, kind="stable")))
    begins, ends = rows.column("begin").to_numpy(), rows.column("end").to_numpy()
    together = bool(begins.max() < ends.min())
    low, last = (begins.min(), ends.max()) if together else (0, int((ends - begins).max()))
    at = np.linspace(low, last, bins + 1)
    flat = rows.column("values").combine_chunks().flatten().to_numpy().astype(np.float64)
    values: Float64Array = np.stack(
        [
            _binned(own, begin if together else 0, end if together else end - begin, at=at)
            for own, begin, end in zip(
                flat.reshape(len(begins), STRETCHES), begins.tolist(), ends.tolist(), strict=True
            )
        ]
    )
    columns = (at[:-1] - low).astype(np.int64).tolist()
    reports = rows.column("report").to_pylist()
    scale = (0.0, float(values.max()) or 1.0) if high is None else (0.0, high)
    unit = f" {value.partition('(')[2].rstrip(')')}".rstrip()
    shown = HeatMap(
        names,
        columns,
        values,
        down="Rank",
        across="Begin (ns)",
        value=value,
        scale=scale,
        ends=[f"{mean:,.0f}{unit}" for mean in values.mean(axis=1).tolist()],
        reports=reports,
    )
    return TimeMap(shown, float(at[1] - at[0]), together)


def _binned(values: Float64Array, begin: int, end: int, at: Float64Array) -> Float64Array:
    """Return the mean of each bin; 0 outside of the report."""
    total = np.concatenate([[0.0], np.cumsum(values)]) * (end - begin) / len(values)
    inside = np.interp(at, np.linspace(begin, end, len(values) + 1), total)
    mean: Float64Array = np.diff(inside) / np.diff(at)
    return mean
