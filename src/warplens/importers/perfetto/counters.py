"""Tracks of numbers: counters of programs, and in traces of warplens's own the memory and metrics of GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.perfetto.details import coded
from warplens.importers.perfetto.slices import PerfettoContext
from warplens.importers.perfetto.trace import UUID
from warplens.importers.rows import numbered

_COUNTERS_PER_PROCESS = 1 << 32


def write(context: PerfettoContext, host: str) -> None:
    """Write `nvtx_counters` and their samples, `gpu_memory` and `gpu_metrics`."""
    samples = context.trace.samples
    time = context.clocks.times(samples)
    first = {int(row["counter"]): row for _, row in context.own.rows("nvtx_counters") if "counter" in row}
    rows: list[dict[str, Any]] = []
    keys = np.full(len(context.places.of), -1, np.int64)
    counts: dict[int, int] = {}
    metrics, memory = [], []
    for track in np.unique(samples["track"]).tolist():
        uuid = int(context.trace.tracks["first"][track]) if context.trace.tracks["kind"][track] == UUID else 0
        about = context.own.counters.get(uuid)
        if about is not None and "metric" in about:
            metrics.append((track, about))
            continue
        if about is not None and "counter" not in about:
            memory.append((track, about, context.own.which[uuid]))
            continue
        own_counter = first.get(about["counter"], {}) if about is not None else {}
        if own_counter:
            process = context.places.key("process", context.own.which[uuid], own_counter.get("process"))
        process = context.place_of_track("process", track) if not own_counter or process < 0 else process
        key = process * _COUNTERS_PER_PROCESS + counts.get(process, 0)
        counts[process] = counts.get(process, 0) + 1
        keys[track] = key
        rows.append(
            {**_counter(context, track, uuid, own_counter=own_counter), "counter": key, "process": process}
        )
    context.write("nvtx_counters", rows)
    _samples(context, time, keys)
    if memory:
        _memory(context, time, memory)
    if metrics:
        _metrics(context, time, metrics, host=host)


def _counter(context: PerfettoContext, track: int, uuid: int, own_counter: dict[str, Any]) -> dict[str, Any]:
    described = context.described.tracks.get(uuid)
    counter = None if described is None else described.counter
    mine = context.trace.samples["track"] == track
    real = bool(context.trace.samples["is_float"][mine].any())
    if own_counter:  # the values are scaled, and as they are
        known = (
            "domain",
            "name",
            "description",
            "unit",
            "minimum",
            "maximum",
            "value_type",
            "interpolation",
            "scope",
        )
        scaled = {"scale": 1.0} if own_counter.get("scale") is not None else {}
        return {
            **{name: own_counter.get(name) for name in known},
            "id": own_counter.get("id", uuid),
            "type": own_counter.get("type", "float64"),
            **scaled,
        }
    above = [item.name for item in context.described.above(uuid)[1:] if item.name and item.pid is None]
    given = context.trace.text(int(context.trace.tracks["name"][track]))
    name = (described.name if described else given) or "counter"
    return {
        "id": uuid,
        "name": " / ".join([*reversed(above), name]),
        "description": described.description if described else None,
        "type": "float64" if real else "int64",
        "unit": counter.unit or None if counter else None,
        "scale": float(counter.scale) if counter and counter.scale != 1 else None,
        "value_type": "delta" if counter and counter.delta else "absolute",
    }


def _samples(context: PerfettoContext, time: Int64Array, keys: Int64Array) -> None:
    samples = context.trace.samples
    key = keys[samples["track"]] if len(samples["track"]) else np.empty(0, np.int64)
    mine = np.flatnonzero(key >= 0)
    process = key[mine] // _COUNTERS_PER_PROCESS
    mine = mine[np.lexsort((time[mine], process))]
    process = key[mine] // _COUNTERS_PER_PROCESS
    real = samples["is_float"][mine] != 0
    thread = np.array([context.main_thread(int(owner)) for owner in np.unique(process)], np.int64)
    context.write(
        "nvtx_counter_samples",
        {
            "id": numbered(process),
            "process": process,
            "thread": thread[np.unique(process, return_inverse=True)[1]] if len(mine) else process,
            "counter": key[mine],
            "start": time[mine],
            "value_int": pa.array(samples["whole"][mine], pa.int64(), mask=real),
            "value_float": pa.array(samples["real"][mine], pa.float64(), mask=~real),
        },
    )


def _memory(context: PerfettoContext, time: Int64Array, memory_tracks: list[tuple[int, Any, int]]) -> None:
    """Write the memory of a process on a device as allocations (growth) and frees (shrinkage)."""
    samples = context.trace.samples
    pieces = []
    for track, about, report in memory_tracks:
        mine = np.flatnonzero(samples["track"] == track)
        mine = mine[np.argsort(time[mine], kind="stable")]
        # The track has totals. Their differences are the allocations and frees: [4, 6, 1] gives +4,
        # +2, -5.
        total = samples["whole"][mine]
        process = np.full(len(mine), context.places.key("process", report, about.get("process")), np.int64)
        device = np.full(len(mine), about.get("device") if about.get("device") is not None else -1, np.int64)
        pieces.append(
            (process, device, [about.get("kind")] * len(mine), time[mine], np.diff(total, prepend=0), total)
        )
    process, device, start, change, total = (
        np.concatenate([piece[n] for piece in pieces]) for n in (0, 1, 3, 4, 5)
    )
    kinds = [kind for piece in pieces for kind in piece[2]]
    order = np.lexsort((start, process))
    context.write(
        "gpu_memory",
        {
            "id": numbered(process[order]),
            "process": process[order],
            "device": pa.array(device[order].astype(np.int32), mask=device[order] < 0),
            "start": start[order],
            "operation": _either(change[order] >= 0, "allocate", "free"),
            "kind": [kinds[row] for row in order.tolist()],
            "address": np.zeros(len(order), np.uint64),
            "bytes": np.abs(change[order]),
            "total": total[order],
        },
    )


def _metrics(
    context: PerfettoContext, time: Int64Array, metric_tracks: list[tuple[int, Any]], host: str
) -> None:
    samples = context.trace.samples
    tracks = dict(metric_tracks)
    mine = np.flatnonzero(np.isin(samples["track"], list(tracks)))
    names = {track: str(about.get("host") or host) for track, about in tracks.items()}
    mine = mine[
        np.lexsort((time[mine], np.array([names[track] for track in samples["track"][mine].tolist()])))
    ]
    where = [tracks[track] for track in samples["track"][mine].tolist()]
    context.write(
        "gpu_metrics",
        {
            "host": [names[track] for track in samples["track"][mine].tolist()],
            "gpu": [about.get("gpu") or 0 for about in where],
            "start": time[mine],
            "metric": [str(about.get("metric")) for about in where],
            "unit": [str(about.get("unit") or "") for about in where],
            "value": np.where(
                samples["is_float"][mine] != 0,
                samples["real"][mine],
                samples["whole"][mine].astype(np.float64),
            ),
        },
    )


def _either(which: npt.NDArray[np.bool_], yes: str, no: str) -> pa.DictionaryArray:
    return coded(np.where(which, 0, 1).astype(np.int32), pa.array([yes, no]))
