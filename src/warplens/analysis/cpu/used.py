"""CPUs that each process used over time: from thread states, else from samples of threads that ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import warplens.report.arrow_compute as pc
from warplens.arrays import Float64Array, Int64Array
from warplens.report.columns import as_numbers

if TYPE_CHECKING:
    from warplens.report.report import Report

_MOST = 2_000  # stretches of a process
_LEAST_NS = 10_000_000  # of a stretch: a sampler at 100 Hz sees nothing shorter


def cpus_used(report: Report) -> Iterator[tuple[int, Int64Array, Float64Array]]:
    """Yield of each process its key, times (ns, the report's clock) and the CPUs it used from each time on; the last one is NaN."""
    process, start, end = _running(report)
    if not len(process):
        return
    order = np.argsort(process, kind="stable")
    keys, first = np.unique(process[order], return_index=True)
    for key, rows in zip(keys.tolist(), np.split(order, first[1:]), strict=True):
        times, values = _over_time(start[rows], end[rows])
        yield key, times, np.append(values, np.nan)


def _running(report: Report) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return process, begin and end of each stretch in which a thread had a CPU."""
    if report.tables["thread_states"]:
        rows = report.table("thread_states", ["process", "start", "end", "state"])
        rows = rows.filter(pc.equal(pc.cast(rows["state"], "string"), "running"))
        process, start, end = (as_numbers(rows[name]) for name in ("process", "start", "end"))
    else:
        rows = report.table("samples", ["process", "start", "end", "count", "weight", "on_cpu", "kind"])
        kind = pc.cast(rows["kind"], "string")
        native = pc.equal(kind, "native")
        best = native if pc.any(native).as_py() else pc.equal(kind, "python")
        rows = rows.filter(pc.and_(best, rows["on_cpu"]))
        process, end = as_numbers(rows["process"]), as_numbers(rows["end"])
        # each sample is one of the time since the tick before
        start = as_numbers(rows["start"]) - as_numbers(rows["weight"]) // np.maximum(
            as_numbers(rows["count"]), 1
        )
    some = end > start
    return process[some], start[some], end[some]


def _over_time(start: Int64Array, end: Int64Array) -> tuple[Int64Array, Float64Array]:
    """Return the edges of equal stretches of time, and how many of the intervals there are on average in each."""
    begin, last = int(start.min()), int(end.max())
    number = max(min(_MOST, (last - begin) // _LEAST_NS), 1)
    edges = begin + np.round(np.arange(number + 1) * ((last - begin) / number)).astype(np.int64)
    spent = _before(start - begin, edges - begin) - _before(end - begin, edges - begin)
    return edges, np.diff(spent) / np.diff(edges)


def _before(times: Int64Array, edges: Int64Array) -> Float64Array:
    """Return of each edge the sum of its distances to the times before it."""
    # For times [1, 4] and edge 6 the distances are 5 and 2. Their sum is 2 * 6 - (1 + 4), so the
    # prefix sums of the times answer every edge at once.
    times = np.sort(times)
    sums = np.concatenate(([0.0], np.cumsum(times, dtype=np.float64)))
    count = np.searchsorted(times, edges)
    return np.asarray(count * edges.astype(np.float64) - sums[count], np.float64)
