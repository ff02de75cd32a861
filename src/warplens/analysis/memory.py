"""Peak memory of each process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import warplens.report.arrow_compute as pc
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report


_END = 0.05  # share of the readings, and 2 at least, in which a process may be giving back its memory


def sizes(report: Report) -> pa.Table:
    """Return the readings of resident memory: process, start (ns), value (bytes), in the order of time."""
    rows = report.table("host_metrics", ["process", "start", "metric", "value"])
    return rows.filter(pc.equal(pc.cast(rows["metric"], "string"), "RSS")).sort_by("start")


def size_over_time(readings: pa.Table, process: int) -> tuple[Int64Array, Float64Array]:
    """Return when the memory of a process was read (ns), and how much it was (bytes)."""
    mine = readings.filter(pc.equal(readings["process"], process))
    return np.asarray(mine["start"].to_numpy(), np.int64), np.asarray(mine["value"].to_numpy(), np.float64)


def before_the_end(value: Float64Array) -> int:
    """Return the number of readings before a process released its memory at its end."""
    kept = len(value)
    for _ in range(max(2, round(_END * len(value)))):
        kept -= kept > 1 and value[kept - 1] < value[kept - 2]
    return kept


def largest(report: Report, low: int, high: int, primary: int = 0) -> tuple[int, str] | None:
    """Return the peak memory (bytes) of a process with a key from `low` to `high`, and its name.

    None if unknown.

    A process that was killed noted nothing: of it the readings count. `primary`: what the system knows of the program itself and all that
    it waited for.
    """
    rows = report.table("processes", ["process", "name", "primary", "max_rss"]).to_pylist()
    mine = {row["process"]: row for row in rows if low <= row["process"] <= high}
    peaks = {key: row["max_rss"] or 0 for key, row in mine.items()}
    if report.tables["host_metrics"] and not all(peaks.values()):
        readings = sizes(report)
        for process, value in zip(
            readings["process"].to_pylist(), readings["value"].to_pylist(), strict=True
        ):
            if process in peaks:
                peaks[process] = max(peaks[process], int(value))
    # more than any child had: it was the program itself, unless a child was killed before it was read
    if primary > max(peaks.values(), default=0):
        peaks |= {key: primary for key, row in mine.items() if row["primary"]}
    key = max(peaks, key=lambda process: peaks[process], default=None)
    return (peaks[key], mine[key]["name"] or "") if key is not None and peaks[key] else None
