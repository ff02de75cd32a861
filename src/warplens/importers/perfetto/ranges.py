"""NVTX ranges and marks: the slices and instants that belong to no other table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.arrays import Int64Array
from warplens.importers.perfetto.details import DetailColumn, coded
from warplens.importers.perfetto.slices import PerfettoContext
from warplens.importers.perfetto.trace import BETWEEN, DOUBLE, INT, JSON, TEXT, UINT
from warplens.importers.rows import numbered
from warplens.model.framework_tables import OPERATORS

_OPS = ("sequence", "backward", "external", "shapes", "types")
_DEFAULT_DOMAIN = "nvtx"


def write(context: PerfettoContext) -> None:
    """Write `nvtx_ranges`, `nvtx_marks`, their payloads, and `ops`."""
    of_table = context.of_tables()
    category = context.trace.events["category"]
    ours = context.begins[~of_table[category[context.begins]]]
    rows = context.sorted(ours)
    ids = numbered(context.place("process", rows))
    _ranges(context, rows, ids)
    marks = context.instants[~of_table[category[context.instants]]]
    marks = marks[np.lexsort((context.time[marks], context.place("process", marks)))]
    mark_ids = numbered(context.place("process", marks))
    context.write(
        "nvtx_marks",
        {
            "id": mark_ids,
            "process": context.place("process", marks),
            "thread": _threads(context, marks),
            "start": context.time[marks],
            **_labels(context, marks),
            "task": _task(context, marks),
        },
    )
    _payloads(context, {"range": (rows, ids), "mark": (marks, mark_ids)})


def _ranges(context: PerfettoContext, rows: Int64Array, ids: Int64Array) -> None:
    process, start, end = context.place("process", rows), context.time[rows], context.end[rows]
    thread, task = _threads(context, rows), context.place("task", rows)
    loose = context.place("loose", rows) == 1
    depth, parent = np.zeros(len(rows), np.int32), np.full(len(rows), -1, np.int64)
    for key in np.unique(process).tolist():
        mine = np.flatnonzero((process == key) & ~loose)
        owner = np.where(task[mine] >= 0, task[mine] + (1 << 62), thread[mine])
        depth[mine], above = native.nest(
            *(np.ascontiguousarray(values) for values in (owner, start[mine], end[mine]))
        )
        parent[mine] = np.where(above < 0, -1, ids[mine][above])
        beside = np.flatnonzero((process == key) & loose)
        depth[beside] = native.lanes(np.ascontiguousarray(start[beside]), np.ascontiguousarray(end[beside]))
        synchronous = np.flatnonzero(task[mine] < 0)
        # Maps a position among all rows to one among the synchronous rows; the last entry serves the parent -1.
        within = np.full(len(mine) + 1, -1, np.int64)
        within[synchronous] = np.arange(len(synchronous))
        places = mine[synchronous]
        context.ranges.add(
            thread[places], ids[places], start[places], end[places], within[above[synchronous]]
        )
    unfinished = context.trace.events["type"][rows] == 1
    unfinished &= context.unended[rows]
    flags = {name: _flag(context, rows, name) for name in ("inherited", "clipped")}
    ended = context.details.of(rows, "end thread") if _is_own(context) else None
    began = context.details.of(rows, "start/end") if _is_own(context) else None
    start_end = loose if began is None else loose | began.there()
    context.write(
        "nvtx_ranges",
        {
            "id": ids,
            "process": process,
            "thread": thread,
            "end_thread": pa.nulls(len(rows), pa.int64())
            if ended is None
            else _keys(context, process, ended.ints()),
            "start": start,
            "end": end,
            **_labels(context, rows),
            "style": pa.DictionaryArray.from_arrays(
                pa.array(np.where(start_end, 1, 0), pa.int32()), ["PushPop", "StartEnd"]
            ),
            "depth": depth,
            "parent": pa.array(parent, pa.int64(), mask=parent < 0),
            "task": _task(context, rows),
            "unfinished": unfinished | _flag(context, rows, "unfinished"),
            **flags,
        },
    )
    _ops(context, rows, ids, process=process, thread=thread)


def _ops(
    context: PerfettoContext, rows: Int64Array, ids: Int64Array, process: Int64Array, thread: Int64Array
) -> None:
    """Write `ops`: the ranges of a framework's domain, in traces of warplens's own."""
    category = context.trace.events["category"][rows]
    numbers = (
        [
            number
            for number, text in enumerate(context.trace.texts.to_pylist())
            if _split(text)[0] == OPERATORS
        ]
        if _is_own(context)
        else []
    )
    own = np.flatnonzero(np.isin(category, numbers))
    facts = {name: context.details.of(rows[own], name) for name in _OPS} if len(own) else {}
    if not any(facts.values()):
        return
    none = pa.nulls(len(own), pa.int64())
    columns: dict[str, Any] = {}
    for name, column in facts.items():
        if column is not None:
            columns[name] = (
                column.texts()
                if name in ("shapes", "types")
                else column.bools()
                if name == "backward"
                else column.ints()
            )
    context.write(
        "ops",
        {
            "range": ids[own],
            "process": process[own],
            "thread": thread[own],
            "start": context.time[rows[own]],
            "end": context.end[rows[own]],
            "name": _named(context, rows[own]),
            **columns,
            "forward": none,
            "stack": none,
        },
    )


def _named(context: PerfettoContext, rows: Int64Array) -> pa.DictionaryArray:
    return coded(context.trace.events["name"][rows], context.trace.texts)


def _labels(context: PerfettoContext, rows: Int64Array) -> dict[str, Any]:
    """Return the columns that ranges and marks share."""
    domain, category = _categories(context, rows)
    number, real = pa.nulls(len(rows), pa.int64()), pa.nulls(len(rows), pa.float64())
    color = pa.nulls(len(rows), pa.uint32())
    if _is_own(context):
        payload = context.details.of(rows, "payload")
        if payload is not None:
            whole, floating = payload.only(INT, UINT), payload.only(DOUBLE)
            number, real = whole.ints(), floating.reals()
        color = _colors(context.details.of(rows, "color"), color)
    return {
        "domain": domain,
        "category": category,
        "category_id": pa.nulls(len(rows), pa.uint32()),
        "message": _named(context, rows),
        "color": color,
        "payload_int": number,
        "payload_float": real,
    }


def _categories(context: PerfettoContext, rows: Int64Array) -> tuple[pa.DictionaryArray, pa.DictionaryArray]:
    numbers = context.trace.events["category"][rows]
    # Texts are split once for each distinct category, not for each row.
    distinct, where = np.unique(numbers, return_inverse=True)
    texts = [context.trace.text(number) for number in distinct.tolist()]
    pairs = [
        (None, None)
        if text is None
        else _split(text)
        if _is_own(context)
        else (None, text.replace(BETWEEN, ",") or None)
        for text in texts
    ]
    columns = []
    for side in (0, 1):
        values = [pair[side] for pair in pairs]
        columns.append(pa.array(values, pa.string()).take(pa.array(where)).dictionary_encode())
    return columns[0], columns[1]


def _split(text: str) -> tuple[str | None, str | None]:
    """Return domain and category of warplens's own."""
    domain, _, category = text.partition(BETWEEN)
    return (None if domain == _DEFAULT_DOMAIN else domain or None), category or None


def _is_own(context: PerfettoContext) -> bool:
    return bool(context.own.reports)


def _colors(column: DetailColumn | None, missing: pa.Array) -> pa.Array:
    if column is None:
        return missing
    texts = column.texts()
    made = [_color(text) for text in texts.dictionary.to_pylist()]
    return pa.array(made, pa.uint32()).take(texts.indices)


def _color(text: str) -> int | None:
    try:
        return int(text.removeprefix("#"), 16) | 0xFF000000 if len(text) == 7 else None
    except ValueError:
        return None


def _flag(context: PerfettoContext, rows: Int64Array, name: str) -> npt.NDArray[np.bool_]:
    column = context.details.of(rows, name) if _is_own(context) else None
    if column is None:
        return np.zeros(len(rows), bool)
    return np.asarray(pc.fill_null(column.bools(), False).to_numpy(zero_copy_only=False), bool)


def _threads(context: PerfettoContext, rows: Int64Array) -> Int64Array:
    """Return the thread of each event: its track's, or the one that a start/end range says.

    Else its process's first.
    """
    thread, process = context.place("thread", rows), context.place("process", rows)
    detail = context.details.of(rows, "thread") if _is_own(context) else None
    if detail is not None:
        keys = _keys(context, process, detail.ints()).fill_null(-1).to_numpy(zero_copy_only=False)
        thread = np.where(keys >= 0, keys, thread)
    for key in np.unique(process[thread < 0]).tolist():
        thread = np.where((thread < 0) & (process == key), context.main_thread(key), thread)
    return thread


def _keys(context: PerfettoContext, process: Int64Array, tids: pa.Array) -> pa.Array:
    """Return the keys of the threads with these ids; null where there is none."""
    known = {(row["process"], row["tid"]): row["thread"] for row in context.places.thread_rows}
    keys = [
        None if tid is None else known.get((owner, tid))
        for owner, tid in zip(process.tolist(), tids.to_pylist(), strict=True)
    ]
    return pa.array(keys, pa.int64())


def _task(context: PerfettoContext, rows: Int64Array) -> pa.Array:
    task = context.place("task", rows)
    return pa.array(task, pa.int64(), mask=task < 0)


def _payloads(context: PerfettoContext, events: dict[str, tuple[Int64Array, Int64Array]]) -> None:
    """Write the data of events beyond a number.

    Of warplens's own the payloads, of others all of their annotations as one.
    """
    for kind, (rows, ids) in events.items():
        if not _is_own(context):
            _annotations(context, kind, rows, ids=ids)
            continue
        cut = context.details.of(rows, "payload cut")
        was_cut = np.zeros(len(rows), bool) if cut is None else cut.there()
        for name, at_end in (("payload", False), ("end payload", True)):
            detail = context.details.of(rows, name)
            made = []
            for place, form, value in (
                () if detail is None else detail.only(*((TEXT, JSON) if not at_end else range(6))).python()
            ):
                text = value if form == JSON else json.dumps(value)
                made.append((place, text))
            made.sort(key=lambda pair: pair[0])
            _write_payloads(
                context,
                kind,
                rows,
                ids=ids,
                place=np.array([place for place, _ in made], np.int64),
                texts=[text for _, text in made],
                at_end=at_end,
                cut=was_cut,
            )


def _annotations(context: PerfettoContext, kind: str, rows: Int64Array, ids: Int64Array) -> None:
    events, texts = context.objects
    own = np.full(len(context.time), -1, np.int64)
    own[rows] = np.arange(len(rows))
    for at_end in (False, True):
        owner = context.partner[events] if at_end and len(events) else events
        place = np.where(owner >= 0, own[owner], -1) if len(events) else events
        if at_end and len(events):
            place = np.where(context.trace.events["type"][events] == 2, place, -1)
        mine = np.flatnonzero(place >= 0)
        mine = mine[np.argsort(place[mine], kind="stable")]
        none = np.zeros(len(rows), bool)
        _write_payloads(
            context,
            kind,
            rows,
            ids=ids,
            place=place[mine],
            texts=texts.take(pa.array(mine)),
            at_end=at_end,
            cut=none,
        )


def _write_payloads(
    context: PerfettoContext,
    kind: str,
    rows: Int64Array,
    ids: Int64Array,
    place: Int64Array,
    texts: Any,
    at_end: bool,
    cut: npt.NDArray[np.bool_],
) -> None:
    if not len(place):
        return
    size = len(place)
    context.write(
        "payloads",
        {
            "process": context.place("process", rows)[place],
            "event_type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), [kind]),
            "event": ids[place],
            "schema": pa.nulls(size, pa.int64()),
            "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), ["json"]),
            "at_end": np.full(size, at_end),
            "cut": cut[place],
            "json": texts,
        },
    )
