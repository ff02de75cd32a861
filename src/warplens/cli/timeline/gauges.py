"""Counters as one height per column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.counters import CounterSeries, all_series
from warplens.arrays import Float64Array
from warplens.cli.timeline.model import Gauge

if TYPE_CHECKING:
    from warplens.analysis.occupancy import Window
    from warplens.report import Report


def gauges(report: Report, window: Window, columns: int) -> dict[int, list[Gauge]]:
    """Return the counters of each process that have a value in the window."""
    gauges_of: dict[int, list[Gauge]] = {}
    for series in all_series(report):
        gauge = gauge_of(series, window, columns)
        if gauge is not None:
            gauges_of.setdefault(series.facts["process"], []).append(gauge)
    return gauges_of


def gauge_of(series: CounterSeries, window: Window, columns: int) -> Gauge | None:
    """Return one counter; None if it has no value in the window."""
    finite = np.where(np.isfinite(series.values), series.values, np.nan)  # infinity has no height
    values = column_values(CounterSeries(series.facts, series.times, finite), window, columns)
    return None if np.isnan(values).all() else _gauge(series, values)


def column_values(series: CounterSeries, window: Window, columns: int) -> Float64Array:
    """Return one value per column, NaN if nothing is known.

    That is the sum of the changes in the column for `delta` counters, else the highest value: of the samples in it and of what holds
    at its middle. Where a counter does not say what holds between samples, its value stays until the next one.
    """
    begin, end = window
    inside = series.within(begin, end)
    place = (inside.times - begin) * columns // (end - begin)
    if series.is_delta:
        number, total = (
            np.bincount(place, minlength=columns),
            np.bincount(place, np.nan_to_num(inside.values), columns),
        )
        return np.where(number > 0, total, np.nan)
    middles: Float64Array = begin + (np.arange(columns, dtype=np.float64) + 0.5) * ((end - begin) / columns)
    values = _held(series, middles, end)
    np.fmax.at(values, place, inside.values)
    return values


def _held(series: CounterSeries, times: Float64Array, end: int) -> Float64Array:
    """Return what holds at each of some times."""
    if series.facts["interpolation"] == "point":
        return np.full(len(times), np.nan)
    if series.facts["interpolation"] is None:
        series = CounterSeries({**series.facts, "interpolation": "until_next"}, series.times, series.values)
    starts, ends, before, after = series.pieces(end)
    if not len(starts):
        return np.full(len(times), np.nan)
    place = np.searchsorted(starts, times, side="right") - 1
    inside = (place >= 0) & (times < ends[np.maximum(place, 0)])
    share = (times - starts[place]) / (ends[place] - starts[place])
    return np.where(inside, before[place] + (after[place] - before[place]) * share, np.nan)


def _gauge(series: CounterSeries, values: Float64Array) -> Gauge:
    facts = series.facts
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    least, most = (
        None if facts[name] is None else facts[name] * (facts["scale"] or 1)
        for name in ("minimum", "maximum")
    )
    if series.is_delta or 0 <= low <= high / 2:
        low = min(low, 0.0)  # so that twice as high means twice as much
    if not series.is_delta and least is not None and most is not None and least <= low and high <= most:
        low, high = least, most
    length = high - low
    heights = tuple(
        None if np.isnan(value) else (float(value) - low) / length if length else 0.5 for value in values
    )
    return Gauge(
        facts["name"] or f"counter {facts['id']}",
        facts["domain"],
        heights,
        low=low,
        high=high,
        unit=facts["unit"],
        summed=series.is_delta,
    )
