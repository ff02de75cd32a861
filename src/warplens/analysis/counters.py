"""The values of counters over time, in their units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

DELTA = "delta"
# What of the time between two samples a counter says something about.
HOLDS = ("since_last", "until_next", "linear")


@dataclass(frozen=True)
class CounterSeries:
    """One counter: its `facts`, `times` (ns) and `values`.

    `facts` is its row of `nvtx_counters`, `times` rise, `values` are in its unit; NaN: there was
    none.
    """

    facts: dict[str, Any]
    times: Int64Array
    values: Float64Array

    @property
    def is_delta(self) -> bool:
        """True if each value is the change since the previous sample."""
        return bool(self.facts["value_type"] == DELTA)

    @property
    def is_whole(self) -> bool:
        """True if the values are integers."""
        return "int" in self.facts["type"] and float(self.facts["scale"] or 1).is_integer()

    def within(self, begin: int, end: int) -> CounterSeries:
        """Return the samples of [begin, end)."""
        first, last = np.searchsorted(self.times, (begin, end))
        return CounterSeries(self.facts, self.times[first:last], self.values[first:last])

    def pieces(self, end: int) -> tuple[Int64Array, Int64Array, Float64Array, Float64Array]:
        """Return the stretches with a known value: begin, end (ns), value at the start and at the end.

        Between samples `since_last` has the later value, `until_next` the earlier one (after the last sample until `end`), `linear`
        goes straight from one to the next. Counters that do not say what holds between samples have no stretches.
        """
        kind, times, values = self.facts["interpolation"], self.times, self.values
        if kind not in HOLDS or not len(times):
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0)
        if kind == "until_next":
            times, values = np.append(times, max(end, int(times[-1]))), np.append(values, values[-1])
        first, second = values[:-1], values[1:]
        before = second if kind == "since_last" else first
        after = first if kind == "until_next" else second
        known = np.isfinite(before) & np.isfinite(after) & (times[1:] > times[:-1])
        return times[:-1][known], times[1:][known], before[known], after[known]


def time_average(series: CounterSeries, begin: int, end: int) -> float | None:
    """Return the mean over time of the value within [begin, end). Only of stretches where it is known and finite; None: nowhere."""
    starts, ends, before, after = series.pieces(end)
    first, last = np.maximum(starts, begin), np.minimum(ends, end)
    inside = last > first
    if not inside.any():
        return None
    slope = (after - before)[inside] / (ends - starts)[inside]
    middle = before[inside] + slope * ((first - starts) + (last - starts))[inside] / 2
    return float(np.average(middle, weights=(last - first)[inside]))


def all_series(report: Report) -> Iterator[CounterSeries]:
    """Yield the counters of a report that have samples, by process, in the order of registration."""
    if not report.tables["nvtx_counter_samples"]:
        return
    facts = {row["counter"]: row for row in report.table("nvtx_counters").to_pylist()}
    table = report.table("nvtx_counter_samples", ["counter", "start", "value_int", "value_float", "no_value"])
    keys, times = table.column("counter").to_numpy(), table.column("start").to_numpy()
    unsigned = [key for key, row in facts.items() if row["type"] == "uint64"]
    values = sample_values(table, np.isin(keys, unsigned))
    unchanged = pc.fill_null(
        pc.equal(pc.cast(table.column("no_value"), pa.string()), "unchanged"), False
    ).to_numpy()
    order = np.lexsort((times, keys))
    edges = np.flatnonzero(np.diff(keys[order], prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = order[first:last]
        known = facts.get(int(keys[rows[0]]))
        if known is None:  # a broken report: samples of nothing
            continue
        own = values[rows]
        if unchanged[rows].any():
            own = _repeated(own, unchanged[rows], known["value_type"] == DELTA)
        with np.errstate(over="ignore", invalid="ignore"):  # whatever scale the program gave
            scaled = own * float(known["scale"] or 1)
        yield CounterSeries(known, np.asarray(times[rows], np.int64), scaled)


def sample_values(rows: pa.Table, unsigned: npt.NDArray[np.bool_]) -> Float64Array:
    """Return the values of samples as floats, unscaled.

    0 if the program reported `zero`, NaN if there is no value.

    `unsigned` says of each row whether its counter is a uint64, whose large values are negative in the table.
    """
    whole = pc.cast(rows.column("value_int"), pa.float64(), safe=False)
    if unsigned.any():
        wrapped = pc.and_(pa.array(unsigned), pc.less(rows.column("value_int").combine_chunks(), 0))
        whole = pc.if_else(wrapped, pc.add(whole.combine_chunks(), float(1 << 64)), whole.combine_chunks())
    zero = pc.if_else(
        pc.fill_null(pc.equal(pc.cast(rows.column("no_value"), pa.string()), "zero"), False),
        0.0,
        float("nan"),
    )
    return np.asarray(pc.coalesce(rows.column("value_float"), whole, zero).to_numpy(), np.float64)


def counter_name(facts: dict[str, Any]) -> str:
    """Return `domain:name`; the default domain is empty.

    A counter without a name has its number.
    """
    return f"{facts['domain'] or ''}:{facts['name'] or facts['id']}"


def _repeated(values: Float64Array, unchanged: npt.NDArray[np.bool_], delta: bool) -> Float64Array:
    """Fill in the values of samples that repeat the previous value."""
    if delta:
        return np.where(unchanged, 0.0, values)
    # The running maximum of the places that have a value is the last such place: unchanged = [F, T,
    # T, F] gives places [0, -1, -1, 3], then [0, 0, 0, 3].
    place = np.where(unchanged, -1, np.arange(len(values)))
    place = np.maximum.accumulate(place)
    return np.where(place < 0, np.nan, values[np.maximum(place, 0)])
