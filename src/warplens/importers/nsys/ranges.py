"""The tables `nvtx_ranges` and `nvtx_marks`, and which range encloses what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.conditions import Among
from warplens.importers.nsys.database import LATEST
from warplens.importers.nsys.names import combined, distinct_values, encoded
from warplens.importers.nsys.payloads import NsysPayloads
from warplens.importers.nsys.rows import NsysRows
from warplens.importers.nsys.taken import NsysContext
from warplens.importers.rows import numbered

TABLE = "NVTX_EVENTS"
_PUSH_POP, _START_END, _MARKS = (59, 70), (60, 71), (34, 65)
_CATEGORY, _THREAD_NAME, _DOMAIN = 33, 39, 75
_INTS = ("uint64Value", "int64Value", "uint32Value", "int32Value")
_REALS = ("doubleValue", "floatValue")
_MANY = 1 << 20  # rows
_COLUMNS = (
    "start",
    "end",
    "eventType",
    "category",
    "color",
    "globalTid",
    "endGlobalTid",
    "textId",
    "domainId",
    "eventId",
    "jsonTextId",
)


@dataclass
class ThreadRanges:
    """The push/pop ranges of one thread, sorted by start.

    `parent` is a place in these arrays, -1: none.
    """

    id: Int64Array
    start: Int64Array
    end: Int64Array
    parent: Int64Array


class NsysRanges:
    """The push/pop ranges of the report, by thread."""

    def __init__(self) -> None:
        self._threads: dict[int, ThreadRanges] = {}

    def add(
        self, thread: Int64Array, ids: Int64Array, start: Int64Array, end: Int64Array, parent: Int64Array
    ) -> None:
        """Add one process's ranges, sorted by start.

        `parent` is a place in these arrays, -1: none.
        """
        for key in np.unique(thread).tolist():
            mine = np.flatnonzero(thread == key)
            within = np.full(len(thread) + 1, -1, np.int64)
            within[mine] = np.arange(len(mine))
            self._threads[key] = ThreadRanges(ids[mine], start[mine], end[mine], parent=within[parent[mine]])

    def of_threads(self, keys: Int64Array) -> Iterator[tuple[int, ThreadRanges]]:
        """Yield those of the threads `keys` that have ranges."""
        for key in keys.tolist():
            if key in self._threads:
                yield key, self._threads[key]


@dataclass
class Annotations:
    """Everything that was annotated: ranges, marks, and the names that were given."""

    context: NsysContext
    thread_names: dict[int, str] = field(default_factory=dict)
    ranges: NsysRanges = field(default_factory=NsysRanges)
    _domains: dict[tuple[int, int], str] = field(default_factory=dict)
    _categories: dict[tuple[int, int, int], str] = field(default_factory=dict)

    def write(self) -> None:
        """Write all ranges and marks, and keep what is needed of them and the names."""
        context, database = self.context, self.context.database
        context.tally.used.add(TABLE)
        if not database.has(TABLE, "eventType"):
            return
        named = Among("eventType", (_CATEGORY, _THREAD_NAME, _DOMAIN))
        self._named(database.read(TABLE, _COLUMNS, texts=("text",), where=[named]))
        pairs = {
            (tid & ~0xFFFFFF, domain) for tid, domain in database.distinct(TABLE, ("globalTid", "domainId"))
        }
        self._payloads = NsysPayloads.written(
            context, self._domains, {pair for pair in pairs if pair[0] in context.identity.keys}
        )
        for owner in self._owners():
            self._write_ranges(self._happened(owner, (*_PUSH_POP, *_START_END)))
            self._write_marks(self._happened(owner, _MARKS))

    def _owners(self) -> list[int | None]:
        """Return the processes whose rows are read together.

        Of a large table one process after another, else all (None).
        """
        few = self.context.database.count(TABLE) < _MANY or not self.context.database.has(TABLE, "globalTid")
        return [None] if few else list(self.context.identity.keys)

    def _happened(self, owner: int | None, kinds: tuple[int, ...]) -> NsysRows:
        """Return the rows of these kinds that have a time."""
        where = [Among("eventType", kinds)]
        if owner is not None:
            where.append(Among("globalTid", (owner,), ~0xFFFFFF))
        rows = self.context.database.read(
            TABLE, [*_COLUMNS, *_INTS], _REALS, ("text", "jsonText", "binaryData"), where
        )
        good = rows.valid("start")
        for times in (rows.ints("start"), rows.ints("end")):
            good &= (times <= LATEST) & (times >= -LATEST)
        if not good.all():
            self.context.tally.say(
                "warning",
                "no-time",
                f"rows of {TABLE} without a time that can be were left out",
                int((~good).sum()),
            )
        return rows.taken(good)

    def _named(self, rows: NsysRows) -> None:
        columns = (rows.ints(name).tolist() for name in ("eventType", "globalTid", "domainId", "category"))
        for kind, tid, domain, category, text in zip(*columns, self._texts(rows).to_pylist(), strict=True):
            process = tid & ~0xFFFFFF
            if text is None:
                continue
            if kind == _DOMAIN:
                self._domains[process, domain] = text
            elif kind == _CATEGORY:
                self._categories[process, domain, category] = text
            else:
                self.thread_names[tid] = text

    def _write_ranges(self, rows: NsysRows) -> None:
        context, identity = self.context, self.context.identity
        process = identity.process(rows.ints("globalTid"))
        start = rows.ints("start")
        unfinished = ~rows.valid("end")
        last = np.array(
            [identity.processes[tid & ~0xFFFFFF].last for tid in rows.ints("globalTid").tolist()], np.int64
        )
        end = np.maximum(np.where(unfinished, last, rows.ints("end")), start)
        order = np.lexsort((-end, start, process))
        rows, process, start, end, unfinished = (
            rows.taken(order),
            process[order],
            start[order],
            end[order],
            unfinished[order],
        )
        ids = numbered(process)
        thread = identity.thread(rows.ints("globalTid"))
        pushed = np.isin(rows.ints("eventType"), _PUSH_POP)
        depth, parent = np.zeros(len(rows), np.int32), np.full(len(rows), -1, np.int64)
        for key in np.unique(process).tolist():
            mine = np.flatnonzero((process == key) & pushed)
            # `nest` takes ranges in order of start and returns positions among those given, -1 for none.
            depth[mine], above = native.nest(
                *(np.ascontiguousarray(values[mine]) for values in (thread, start, end))
            )
            parent[mine] = np.where(above < 0, -1, ids[mine][above])
            self.ranges.add(thread[mine], ids[mine], start[mine], end[mine], above)
            loose = np.flatnonzero((process == key) & ~pushed)
            depth[loose] = native.lanes(np.ascontiguousarray(start[loose]), np.ascontiguousarray(end[loose]))
        none = np.zeros(len(rows), bool)
        context.write(
            "nvtx_ranges",
            {
                "id": ids,
                "process": process,
                "thread": thread,
                "end_thread": self._end_threads(rows),
                "start": start,
                "end": end,
                **self._labels(rows),
                "style": pa.DictionaryArray.from_arrays(
                    pa.array(np.where(pushed, 0, 1), pa.int32()), ["PushPop", "StartEnd"]
                ),
                "depth": depth,
                "parent": pa.array(parent, pa.int64(), mask=parent < 0),
                "unfinished": unfinished,
                "inherited": none,
                "clipped": none,
            },
        )
        self._payloads.write("range", rows, ids, process, self._texts(rows, "jsonTextId", "jsonText"))

    def _write_marks(self, rows: NsysRows) -> None:
        process = self.context.identity.process(rows.ints("globalTid"))
        order = np.lexsort((rows.ints("start"), process))
        rows, process = rows.taken(order), process[order]
        ids = numbered(process)
        columns = {"id": ids, "process": process, "start": rows.ints("start")}
        columns["thread"] = self.context.identity.thread(rows.ints("globalTid"))
        self.context.write("nvtx_marks", {**columns, **self._labels(rows)})
        self._payloads.write("mark", rows, ids, process, self._texts(rows, "jsonTextId", "jsonText"))

    def _labels(self, rows: NsysRows) -> dict[str, Any]:
        """Return the columns that ranges and marks share."""
        domain = rows.ints("domainId")
        owner = rows.ints("globalTid") & ~0xFFFFFF
        has_category = rows.valid("category") & (rows.ints("category") != 0)
        number, real = self._numbers(rows)
        return {
            "domain": self._looked_up([owner, domain], domain != 0, self._domains, unknown="domain {}"),
            "category": self._looked_up(
                [owner, domain, rows.ints("category")], has_category, self._categories, unknown="{}"
            ),
            "category_id": pa.array(rows.ints("category").astype(np.uint32), mask=~has_category),
            "message": self._texts(rows).dictionary_encode(),
            "color": pa.array(rows.ints("color").astype(np.uint32), mask=~rows.valid("color")),
            "payload_int": number,
            "payload_float": real,
        }

    def _texts(self, rows: NsysRows, number: str = "textId", text: str = "text") -> pa.Array:
        """Return the text of each row: a registered string, else what is in the row."""
        registered = rows.valid(number)
        inline = rows.texts(text)
        if not registered.any():
            return inline
        known = encoded(self.context.database, rows.ints(number), registered).cast(pa.string())
        return pc.coalesce(known, inline)

    def _looked_up(
        self, keys: list[Int64Array], valid: BoolArray, names: dict[Any, str], unknown: str
    ) -> pa.DictionaryArray:
        """Return the name that each row's keys have in `names`.

        `unknown` with the last key if there is none.
        """
        if not valid.any():
            return pa.nulls(len(valid), pa.string()).dictionary_encode()
        codes, distinct = combined([key[valid] for key in keys])
        texts = [names.get(tuple(key), unknown.format(key[-1])) for key in distinct]
        whole = np.zeros(len(valid), np.int32)
        whole[valid] = codes
        return distinct_values(whole, texts, valid)

    def _numbers(self, rows: NsysRows) -> tuple[pa.Array, pa.Array]:
        number, has_number = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
        for name in _INTS:
            number, has_number = (
                np.where(rows.valid(name), rows.ints(name), number),
                has_number | rows.valid(name),
            )
        real, has_real = np.zeros(len(rows)), np.zeros(len(rows), bool)
        for name in _REALS:
            real, has_real = np.where(rows.valid(name), rows.reals(name), real), has_real | rows.valid(name)
        return pa.array(number, pa.int64(), mask=~has_number), pa.array(real, pa.float64(), mask=~has_real)

    def _end_threads(self, rows: NsysRows) -> pa.Array:
        other = rows.valid("endGlobalTid") & (rows.ints("endGlobalTid") != rows.ints("globalTid"))
        tids = np.where(other, rows.ints("endGlobalTid"), rows.ints("globalTid"))
        return pa.array(self.context.identity.thread(tids), pa.int64(), mask=~other)
