"""Counters: the tables `nvtx_counters` and `nvtx_counter_samples`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.kineto.columns import dictionary, ordered, taken
from warplens.importers.rows import numbered
from warplens.storage.writer import RANGES_PER_PROCESS

if TYPE_CHECKING:
    from warplens.importers.kineto.trace import KinetoTrace

_REAL, _NOTHING = 1, 2
_APART = 60_000_000_000  # ns by which samples may lie before and behind all events, where those take less


def write(trace: KinetoTrace) -> None:
    """Write both tables; a counter with several values is one for each of them."""
    identity = trace.identity
    start, name, argument, value, is_real, number = trace.take(
        "counter", "start", "name", "argument", "value", "is_real", "id"
    )
    lane = identity.lanes.pop("counter")
    if not len(start):
        return
    process, thread = identity.process[lane], identity.thread[lane]
    start, name, argument, value, is_real, number, process, thread = taken(
        ordered(process, start), start, name, argument, value, is_real, number, process, thread
    )
    _saw(trace, process, thread, start=start)
    keys = pa.table({"process": process, "name": name, "argument": argument, "id": number})
    distinct = keys.group_by(keys.column_names).aggregate([])
    rows = sorted(distinct.to_pylist(), key=lambda row: tuple(row.values()))
    several: dict[tuple[int, int, int], int] = {}
    for row in rows:
        group = (row["process"], row["name"], row["id"])
        several[group] = several.get(group, 0) + 1
    counters, counts = [], dict[int, int]()
    numbers: dict[tuple[int, ...], int] = {}
    for row in rows:
        title = trace.texts[row["name"]] if row["name"] >= 0 else ""
        if row["id"] != -(1 << 63):
            title += f" {row['id']}" if row["id"] >= 0 else f" {trace.texts[-1 - row['id']]}"
        if several[row["process"], row["name"], row["id"]] > 1:
            title += f".{trace.texts[row['argument']]}"
        place = counts[row["process"]] = counts.get(row["process"], -1) + 1
        key = numbers[tuple(row.values())] = row["process"] * RANGES_PER_PROCESS + place
        counters.append(
            {"counter": key, "process": row["process"], "id": place, "name": title, "type": "float64"}
        )
    trace.part.write("nvtx_counters", counters)
    joined = {key: place for place, key in enumerate(numbers)}
    which = np.fromiter(
        (
            joined[row]
            for row in zip(process.tolist(), name.tolist(), argument.tolist(), number.tolist(), strict=True)
        ),
        np.int64,
        len(start),
    )
    trace.write(
        "nvtx_counter_samples",
        {
            "id": numbered(process),
            "process": process,
            "thread": thread,
            "counter": np.array(list(numbers.values()), np.int64)[which],
            "start": start,
            "value_int": pa.array(value, pa.int64(), mask=is_real != 0),
            "value_float": pa.array(value.view(np.float64), pa.float64(), mask=is_real != _REAL),
            "no_value": dictionary(np.where(is_real == _NOTHING, 0, -1).astype(np.int32), ["unavailable"]),
        },
    )


def _saw(trace: KinetoTrace, process: Int64Array, thread: Int64Array, start: Int64Array) -> None:
    """Extend processes to these samples.

    Samples far from all events must be of another clock, and are left out.
    """
    near = np.ones(len(start), bool)
    if trace.first is not None and trace.last is not None:
        reach = max(trace.last - trace.first, _APART)
        near = (start >= trace.first - reach) & (start <= trace.last + reach)
    trace.identity.saw(process[near], thread[near], start=start[near], end=start[near])
    if far := int((~near).sum()):
        message = (
            "counter samples are far from all events of the file, probably on another clock: they do "
            "not count for its time span"
        )
        trace.say("warning", "counter-clock", message, far)
