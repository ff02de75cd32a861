"""Plots: CPUs that processes used, memory of processes and of tensors, counters of programs, metrics of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.analysis.counters import all_series
from warplens.analysis.cpu.used import cpus_used
from warplens.analysis.memory import size_over_time, sizes
from warplens.arrays import Float64Array, Int64Array
from warplens.timeline.tree import CounterOwner

if TYPE_CHECKING:
    from warplens.report.report import Report

_FIRST = (
    "SM Active",
    "Tensor Active",
    "DRAM Bandwidth",
    "GPU Utilization",
    "Memory Used",
    "Power",
    "SM Clock",
)
_BLOCK = 256  # samples that are summed up at a time


class Counter:
    """One counter: from `times[i]` (ns, the report's clock, rising) on its value is `values[i]`.

    NaN: nothing is known.
    """

    def __init__(
        self, layer: str, key: str, name: str, unit: str, where: CounterOwner, times: Any, values: Any
    ) -> None:
        self.layer, self.key, self.name, self.unit, self.where = layer, key, name, unit, where
        self.times: Int64Array = np.asarray(times, np.int64)
        self.values: Float64Array = np.where(np.isfinite(values), values, np.nan).astype(np.float64)
        known = self.values[~np.isnan(self.values)]
        self.low, self.high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        # Least and greatest of each whole block, made once. A wide stretch then reads one number
        # for each block, and single samples only at its two edges.
        whole = len(self.values) // _BLOCK * _BLOCK
        with np.errstate(invalid="ignore"):
            self._least = (
                np.fmin.reduceat(self.values[:whole], np.arange(0, whole, _BLOCK)) if whole else np.empty(0)
            )
            self._most = (
                np.fmax.reduceat(self.values[:whole], np.arange(0, whole, _BLOCK)) if whole else np.empty(0)
            )

    def plot(
        self, begin: int, end: int, width: int
    ) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """Return time, lowest, highest and last value of each column of [begin, end) with a sample. There are `width` columns.

        Before them comes the value that holds at `begin`, at the time of its sample.
        """
        first, last = (int(place) for place in np.searchsorted(self.times, (begin, end)))
        before = max(first - 1, 0) if first else first
        if last - first <= 2 * width:
            values = self.values[before:last]
            return self.times[before:last].astype(np.float64), values, values, values
        # Column k has the samples [edges[k], edges[k + 1]). Empty columns are dropped, so `starts`
        # rises strictly, as `reduceat` needs it.
        edges = np.searchsorted(
            self.times, begin + (np.arange(width + 1) * ((end - begin) / width)).astype(np.int64)
        )
        edges[0], edges[-1] = first, last
        starts = np.unique(edges[:-1][np.diff(edges) > 0])
        ends = np.append(starts[1:], last)
        low, high = self._extremes(starts, ends)
        time = self.times[starts].astype(np.float64)
        held = self.values[before:first]
        return (
            np.append(self.times[before:first].astype(np.float64), time),
            np.append(held, low),
            np.append(held, high),
            np.append(held, self.values[ends - 1]),
        )

    def _extremes(self, starts: Int64Array, ends: Int64Array) -> tuple[Float64Array, Float64Array]:
        """Return the extremes of neighbouring stretches of samples: of long ones by blocks."""
        if int(ends[-1] - starts[0]) < 64 * _BLOCK * 16:
            inside = self.values[starts[0] : ends[-1]]
            return np.fmin.reduceat(inside, starts - starts[0]), np.fmax.reduceat(inside, starts - starts[0])
        low, high = np.empty(len(starts)), np.empty(len(starts))
        for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            # Blocks [head, tail) lie whole in [start, end): with blocks of 64, [100, 300) has the
            # blocks 2 and 3, and the samples 100 to 127 and 256 to 299 at its edges.
            head, tail = -(-start // _BLOCK), end // _BLOCK
            if tail <= head:
                low[place], high[place] = (
                    np.fmin.reduce(self.values[start:end]),
                    np.fmax.reduce(self.values[start:end]),
                )
                continue
            edge = np.append(self.values[start : head * _BLOCK], self.values[tail * _BLOCK : end])
            low[place] = np.fmin.reduce(np.append(edge, self._least[head:tail]))
            high[place] = np.fmax.reduce(np.append(edge, self._most[head:tail]))
        return low, high


def counters(report: Report) -> Iterator[Counter]:
    """Yield all counters of a report."""
    counts = report.tables
    if counts["thread_states"] or counts["samples"]:
        yield from _cpus(report)
    if counts["host_metrics"]:
        yield from _resident(report)
    yield from _of_programs(report)
    if counts["gpu_metrics"]:
        yield from _metrics(report)
    if counts["gpu_memory"] or counts["tensor_memory"]:
        yield from _memory(report)
    if counts["tensor_memory"]:
        yield from _tensors_of_cpus(report)


def _cpus(report: Report) -> Iterator[Counter]:
    for process, times, values in cpus_used(report):
        yield Counter(
            "cpu_use",
            str(process),
            "CPUs used",
            unit="CPUs",
            where=CounterOwner(process),
            times=times,
            values=values,
        )


def _resident(report: Report) -> Iterator[Counter]:
    """Memory of processes; of one that was read once there is nothing to draw."""
    readings = sizes(report)
    for process in np.unique(np.asarray(readings["process"].to_numpy(), np.int64)).tolist():
        times, values = size_over_time(readings, process)
        if len(times) > 1:
            yield Counter(
                "memory",
                str(process),
                "Memory",
                unit="bytes",
                where=CounterOwner(process),
                times=times,
                values=values,
            )


def _of_programs(report: Report) -> Iterator[Counter]:
    for series in all_series(report):
        facts, times, values = series.facts, series.times, series.values
        if facts["interpolation"] == "since_last":
            times, values = _since_last(times, values)
        domain = f"{facts['domain']}: " if facts["domain"] else ""
        name = f"{domain}{facts['name'] or facts['id']}"
        yield Counter(
            "nvtx_counters",
            str(facts["counter"]),
            name,
            unit=facts["unit"] or "",
            where=CounterOwner(facts["process"]),
            times=times,
            values=values,
        )


def _metrics(report: Report) -> Iterator[Counter]:
    tracks = []
    for (host, gpu, uuid, metric, unit), times, values in _split(
        report, "gpu_metrics", ("host", "gpu", "uuid", "metric", "unit")
    ):
        held_from, held = _since_last(times, values)
        tracks.append(
            Counter(
                "gpu_metrics",
                f"{host}/{gpu}/{metric}",
                metric,
                unit=unit or "",
                where=CounterOwner(host=host, gpu=gpu, uuid=uuid),
                times=held_from,
                values=held,
            )
        )
    rank = {name: place for place, name in enumerate(_FIRST)}
    yield from sorted(
        tracks, key=lambda one: (one.where.host, one.where.gpu or 0, rank.get(one.name, len(rank)), one.name)
    )


def _memory(report: Report) -> Iterator[Counter]:
    """The levels of memory as the stats have them.

    Pinned and pageable memory of the host as CUDA told its totals.
    """
    from warplens.analysis.gpu.memory_levels import levels

    names = {"CUDA": "Memory", "tensors": "Memory of tensors", "reserved": "Memory reserved for tensors"}
    for level in levels(report):
        where = CounterOwner(level.process, level.device)
        yield Counter(
            "gpu_memory",
            f"{level.process}/{level.device}/{level.series}",
            names[level.series],
            unit="bytes",
            where=where,
            times=level.time,
            values=level.value,
        )


def _tensors_of_cpus(report: Report) -> Iterator[Counter]:
    """Memory of tensors on the CPU, which belongs to no device."""
    rows = report.sql(
        """SELECT process, "start", coalesce(allocated, sum(bytes) OVER (PARTITION BY process ORDER BY "start", id))::DOUBLE AS value
           FROM tensor_memory WHERE device IS NULL ORDER BY process, "start", id"""
    )
    if not rows.num_rows:
        return
    process = np.asarray(rows["process"].to_numpy(), np.int64)
    keys, first = np.unique(process, return_index=True)
    for key, own in zip(keys.tolist(), np.split(np.arange(len(process)), first[1:]), strict=True):
        times, values = (np.asarray(rows[name].to_numpy())[own] for name in ("start", "value"))
        yield Counter(
            "tensor_memory",
            str(key),
            "Memory of tensors",
            unit="bytes",
            where=CounterOwner(key),
            times=times,
            values=values,
        )


def _since_last(times: Any, values: Any) -> tuple[Any, Any]:
    """Values that hold since the sample before as values that hold from their time on."""
    if len(times) < 2:
        return times, values
    return np.concatenate((2 * times[:1] - times[1:2], times)), np.concatenate((values, [np.nan]))


def _split(report: Report, table: str, keys: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield times and values of a table by what they belong to.

    Without SQL: loading DuckDB takes longer than sorting.
    """
    rows = report.table(table, [*keys, "start", "value"])
    times, values = (np.asarray(rows.column(name).to_numpy()) for name in ("start", "value"))
    # One dense number for each combination of keys. Renumbering after each key keeps the product of
    # their sizes small.
    of = np.zeros(len(times), np.int64)
    for key in keys:
        column = rows.column(key)
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        coded = plain.combine_chunks().dictionary_encode(null_encoding="encode")
        of = np.unique(of * max(len(coded.dictionary), 1) + coded.indices.to_numpy(), return_inverse=True)[1]
    order = np.lexsort((times, of))
    edges = [*np.flatnonzero(np.diff(of[order], prepend=-1)).tolist(), len(order)]
    for first, last in pairwise(edges):
        own = order[first:last]
        yield (
            tuple(rows.column(key)[int(own[0])].as_py() for key in keys),
            times[own],
            values[own].astype(np.float64),
        )
