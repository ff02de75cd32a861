"""Converts stages of GPUs (GpuRenderStageEvent) to kernels, copies and memsets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.nsys.taken import join
from warplens.importers.perfetto.details import coded
from warplens.importers.perfetto.slices import PerfettoContext
from warplens.importers.rows import numbered
from warplens.model.tables import TABLES

_COPY = re.compile(r"\b(mem)?cpy\b|\bcopy\b|^Memcpy", re.IGNORECASE)
_SET = re.compile(r"\bmemset\b", re.IGNORECASE)
_KINDS = {"H": "Host", "D": "Device", "P": "Peer", "A": "Array"}
_DIRECTION = re.compile(r"\b([HDPA])to([HDPA])\b")
_GRAPH = "CUDA graph"  # launched as a whole
_GPU = 0xFFFFFFFF


def write(context: PerfettoContext) -> None:
    """Write the stages of the trace, and the devices, contexts and streams that they name."""
    rows = context.stages
    if not len(rows):
        return
    numbers = context.trace.events["name"][rows]
    texts = {number: context.trace.text(number) or "" for number in np.unique(numbers).tolist()}
    copies = np.isin(numbers, [number for number, text in texts.items() if _COPY.search(text)])
    sets = np.isin(numbers, [number for number, text in texts.items() if _SET.search(text)]) & ~copies
    graphs = np.isin(numbers, [number for number, text in texts.items() if text == _GRAPH])
    for table, mine in (
        ("kernels", ~copies & ~sets & ~graphs),
        ("memcpys", copies),
        ("memsets", sets),
        ("graphs", graphs),
    ):
        if mine.any():
            _write(context, table, rows[mine])
    _hardware(context, rows)


def _write(context: PerfettoContext, table: str, rows: Int64Array) -> None:
    from warplens.importers.perfetto.tables import _fitting, _values  # the columns of a table are made there

    rows = context.sorted(rows)
    process, start = context.place("process", rows), context.time[rows]
    device, queue, owner = _where(context, rows)
    made: dict[str, Any] = {
        "id": numbered(process),
        "process": process,
        "start": start,
        "end": context.end[rows],
    }
    made |= {"device": device, "context": owner, "stream": queue}
    name = coded(context.trace.events["name"][rows], context.trace.texts)
    made |= {"name": name, "demangled": name}
    for column in TABLES[table].columns:
        detail = context.details.of(rows, column.name.replace("_", " ")) or context.details.of(
            rows, column.name
        )
        if detail is not None and column.name not in ("id", "process", "start", "end"):
            made[column.name] = _values(detail, column)
    if table == "memcpys" and "kind" not in made:
        kinds = [_kind(text or "") for text in name.dictionary.to_pylist()]
        made["kind"] = pa.array(kinds, pa.string()).take(name.indices)
    if "correlation" in made and len(context.calls.get("key", ())):
        correlation = made["correlation"].fill_null(0).to_numpy(zero_copy_only=False)
        known, keys = context.calls["key"], join(process, correlation)
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        made["api"] = pa.array(
            context.calls["id"][place], pa.int64(), mask=(known[place] != keys) | (correlation == 0)
        )
    context.write(
        table,
        {column.name: _fitting(made.get(column.name), column, len(rows)) for column in TABLES[table].columns},
    )


def _where(context: PerfettoContext, rows: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return device, stream and context of stages: their GPU, their queue, and their context."""
    tracks, track = context.trace.tracks, context.trace.events["track"][rows]
    third, second, first = (np.asarray(tracks[name][track]) for name in ("third", "second", "first"))
    names = tracks["name"][track]
    streams = {number: _stream(context.trace.text(number)) for number in np.unique(names).tolist()}
    queue = (first & np.uint64(_GPU)).astype(np.int64)
    numbered = np.array([-1 if streams[name] is None else streams[name] for name in names.tolist()], np.int64)
    return (
        (third & np.uint64(_GPU)).astype(np.int64),
        np.where(numbered >= 0, numbered, queue),
        second.astype(np.int64),
    )


def _stream(name: str | None) -> int | None:
    """Return the number that a queue's name ends with."""
    match = re.search(r"(?:stream|queue)\D*(\d+)", name or "", re.IGNORECASE)
    return int(match[1]) if match else None


def _kind(text: str) -> str:
    match = _DIRECTION.search(text)
    return f"{_KINDS[match[1]]}-to-{_KINDS[match[2]]}" if match else text


def _hardware(context: PerfettoContext, rows: Int64Array) -> None:
    """Write the names in the stages, unless warplens's own tables have them."""
    if context.own.rows("contexts") or context.own.rows("devices"):
        return
    process = context.place("process", rows)
    device, stream, owner = _where(context, rows)
    distinct: Int64Array = np.unique(np.stack((process, device, owner, stream), axis=1), axis=0)
    seen: set[tuple[int, ...]] = set()

    def fresh(*key: int) -> bool:
        new = key not in seen
        seen.add(key)
        return new

    rows_of_table: dict[str, list[dict[str, Any]]] = {"devices": [], "contexts": [], "streams": []}
    for own, gpu, within, queue in distinct.tolist():
        if fresh(0, own, gpu):
            rows_of_table["devices"].append({"process": own, "device": gpu, "name": f"GPU {gpu}"})
        if fresh(1, own, within):
            rows_of_table["contexts"].append({"process": own, "context": within, "device": gpu})
        if fresh(2, own, within, queue):
            rows_of_table["streams"].append({"process": own, "context": within, "stream": queue})
    for table, made in rows_of_table.items():
        context.write(table, made)
