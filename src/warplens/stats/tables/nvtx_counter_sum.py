"""NVTX Counter Summary.

## What it shows
Values of each NVTX counter: one row per counter and process.

## Columns
- Samples: number of samples with a value.
- Avg, Med, Min, Max, Last: of the samples' values, in the counter's unit.
- TimeAvg: mean over time, for counters whose value holds between samples; else empty.
- Total, Rate (1/s): for counters whose samples are changes (`delta`): their sum, and the sum per
  second; else empty.
- Unit: unit of all values of the row, as the program gave it.
- PID: process id of the system.
- Counter: `domain:name`; the default domain is empty. A field of a structured counter is
  `name.field`.

TimeAvg, Total and Rate are left out if no counter has them.

## How it is computed
Values are multiplied by the counter's scale, which gives its unit. A sample marked `zero` counts as
0, a sample marked `unchanged` as the value before it. A sample without a value counts nowhere, and
a note says how many there are. TimeAvg weights each value with the time for which it holds: until
the next sample (`until_next`, the last one to the end of the process), since the previous one
(`since_last`), or on a straight line between samples (`linear`). Rate divides by the time from the
first to the last sample; with --filter-time or --window, by the selected time. A filter keeps the
samples in its time. TimeAvg also uses the value that held when a filter began, but not one from
before a window.

## Traps
- Avg is the mean of the samples, not a mean over time. A counter that is sampled at special moments
  has special values.
- Rows of several processes are not summed: memory of two processes adds up, temperatures do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.analysis.counters import CounterSeries, all_series, counter_name, time_average
from warplens.errors import MissingData, ReportError
from warplens.stats.base import noted

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_WHEN_THERE = ("TimeAvg", "Total", "Rate (1/s)", "Unit")


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary of all counters; raises MissingData if there is no sample."""
    window = selection.window(report)
    processes = {
        row["process"]: row for row in report.table("processes", ["process", "pid", "end"]).to_pylist()
    }
    rows: list[dict[str, Any]] = []
    gaps = 0
    for series in all_series(report):
        process = processes.get(series.facts["process"])
        if process is None:
            raise ReportError(
                f"{report.path} is broken: the counter {counter_name(series.facts)} belongs to no "
                "process of the report"
            )
        chosen = window or report.window_of(series.facts["process"])
        begin, end = chosen or (int(series.times[0]), max(process["end"], int(series.times[-1])))
        inside = series.within(*window) if window else series
        gaps += int(np.isnan(inside.values).sum())
        with np.errstate(invalid="ignore", over="ignore"):  # the program's own infinities
            row = _row(series, inside, begin=begin, end=end, selected=0 if chosen is None else end - begin)
        if row:
            rows.append({**row, "PID": process["pid"], "Counter": counter_name(series.facts)})
    if not rows:
        raise MissingData(f"does not contain NVTX counter data{selection.place(report)}.")
    names = [
        name for name in rows[0] if name not in _WHEN_THERE or any(row[name] is not None for row in rows)
    ]
    columns = {name: _column([row[name] for row in rows]) for name in names}
    return noted(pa.table(columns), f"{gaps:,} without a value, not counted." if gaps else "")


def _row(
    series: CounterSeries, inside: CounterSeries, begin: int, end: int, selected: int
) -> dict[str, Any] | None:
    """Describe the samples inside the selection; None if there is nothing to say."""
    values = inside.values[~np.isnan(inside.values)]
    average = None if series.is_delta else time_average(series, begin, end)
    if not len(values) and average is None:
        return None
    exact = int if series.is_whole and (np.abs(values) < 2.0**53).all() else float  # what floats hold exactly
    known = len(values) > 0
    total = exact(values.sum()) if series.is_delta and known else None
    length = selected or int(inside.times[-1] - inside.times[0]) if known else 0
    return {
        "Samples": len(values),
        "Avg": float(values.mean()) if known else None,
        "Med": float(np.median(values)) if known else None,
        "Min": exact(values.min()) if known else None,
        "Max": exact(values.max()) if known else None,
        "Last": exact(values[-1]) if known else None,
        "TimeAvg": average,
        "Total": total,
        "Rate (1/s)": float(total) / (length / 1e9) if total is not None and length else None,
        "Unit": series.facts["unit"],
    }


def _column(values: list[Any]) -> pa.Array:
    """Integers stay integers where all are, and have room; else floats."""
    numbers = [value for value in values if isinstance(value, (int, float))]
    whole = all(isinstance(value, int) and abs(value) < 1 << 63 for value in numbers)
    return pa.array(values if whole else [None if value is None else float(value) for value in values])
