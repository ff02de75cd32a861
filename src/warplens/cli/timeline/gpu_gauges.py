"""The counters of GPUs in the terminal timeline: memory that processes have, and metrics of whole devices."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from warplens.analysis.counters import CounterSeries
from warplens.cli.timeline.gauges import gauge_of
from warplens.cli.timeline.model import Gauge

if TYPE_CHECKING:
    from warplens.analysis.occupancy import Window
    from warplens.report import Report

# What tells most comes first, for there is room for few.
_FIRST = (
    "SM Active",
    "Tensor Active",
    "DRAM Bandwidth",
    "GPU Utilization",
    "Memory Used",
    "Power",
    "SM Clock",
)


def gpu_gauges(
    report: Report,
    window: Window,
    columns: int,
    processes: dict[int, str],
    devices: dict[tuple[int, int], dict[str, Any]],
    used: Collection[tuple[int, int]],
) -> tuple[dict[tuple[int, int], list[Gauge]], list[str]]:
    """Return the memory of each GPU of a process (process, device), its metrics, and their hosts.

    Metrics are with the process where only one used the GPU, else with ~(place of the host) instead of a process. GPUs that no process
    used are left out where they were idle: the launcher samples all of the host. `used`: what all processes used.
    """
    hosts: list[str] = []
    gauges_of: dict[tuple[int, int], list[Gauge]] = {}
    counts = report.tables
    if counts["gpu_memory"]:
        text = 'SELECT process, device, kind, "start", total FROM gpu_memory WHERE total IS NOT NULL AND device IS NOT NULL ORDER BY ALL'
        for (process, device, kind), times, values in _series(report, text, ("process", "device", "kind")):
            gauge = gauge_of(
                _facts(
                    f"memory ({kind})" if kind else "memory",
                    "bytes",
                    times,
                    values=values,
                    interpolation="until_next",
                ),
                window,
                columns,
            )
            if gauge is not None and process in processes:
                gauges_of.setdefault((process, device), []).append(gauge)
    if counts["gpu_metrics"]:
        users: dict[str, list[tuple[int, int]]] = {}
        for place in sorted({*used, *gauges_of}):
            users.setdefault((devices.get(place) or {}).get("uuid") or "", []).append(place)
        busy: set[tuple[int, int]] = set()
        hosts = pc.unique(report.table("gpu_metrics", ["host"]).column(0)).to_pylist()
        text = 'SELECT host, gpu, uuid, metric, unit, "start", value FROM gpu_metrics ORDER BY ALL'
        every = _series(report, text, ("host", "gpu", "uuid", "metric", "unit"))
        for (host, gpu, uuid, metric, unit), times, values in sorted(
            every, key=lambda each: (each[0][:2], _rank(each[0][3]))
        ):
            gauge = gauge_of(
                _facts(metric, unit, times, values=values, interpolation="since_last"), window, columns
            )
            using = users.get(uuid or "-", [])
            place = using[0] if len(using) == 1 and using[0][0] in processes else (~hosts.index(host), gpu)
            if gauge is not None:
                gauges_of.setdefault(place, []).append(gauge)
                if using or (unit == "%" and any(gauge.heights)):
                    busy.add(place)
        gauges_of = {place: gauges for place, gauges in gauges_of.items() if place[0] >= 0 or place in busy}
    return gauges_of, hosts


def _rank(metric: str) -> int:
    return _FIRST.index(metric) if metric in _FIRST else len(_FIRST)


def _series(report: Report, text: str, keys: tuple[str, ...]) -> list[tuple[tuple[Any, ...], Any, Any]]:
    """Split sorted samples (their time and value last) by what they belong to."""
    rows = report.sql(text)
    if not rows.num_rows:
        return []
    changes = np.zeros(rows.num_rows, bool)
    changes[0] = True
    for key in keys:
        numbers = (
            rows.column(key).combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        )
        changes[1:] |= numbers[1:] != numbers[:-1]
    edges = [*np.flatnonzero(changes).tolist(), rows.num_rows]
    times, values = (rows.column(index).to_numpy() for index in (len(keys), len(keys) + 1))
    return [
        (
            tuple(rows.column(key)[first].as_py() for key in keys),
            times[first:last].astype(np.int64),
            values[first:last].astype(np.float64),
        )
        for first, last in pairwise(edges)
    ]


def _facts(name: str, unit: str, times: Any, values: Any, interpolation: str) -> CounterSeries:
    """Name what the values are.

    Percentages are drawn from 0 to 100, bytes from 0: half as high is half as much.
    """
    most = {"%": 100.0, "bytes": float(np.nanmax(values, initial=0.0))}.get(unit)
    limits = {"minimum": None if most is None else 0.0, "maximum": most, "scale": None}
    facts = {
        "name": name,
        "id": 0,
        "domain": None,
        "unit": unit or None,
        "type": "float64",
        "value_type": None,
    }
    return CounterSeries({**facts, **limits, "interpolation": interpolation}, times, values)
