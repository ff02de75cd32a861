"""Perfetto protobuf trace (TrackEvent), for ui.perfetto.dev and trace_processor.

## What maps to what
- A process and a thread: a process and a thread track; command line and names included.
- Push/pop ranges: slices on their thread's track. Those that cross another domain's ranges: a second track of the thread.
- Start/end ranges: slices on tracks of their process, as many as overlap.
- Tasks (asyncio, trio, generators): tracks under the thread they were first seen on, with the ranges and marks made in them.
- Marks: instants on their thread's or task's track.
- Counters: counter tracks of their process, with unit and description; `delta` counters are incremental.
- Domain (`nvtx` for the default one) and category: the event's categories. Colour, payload (also structured
  ones, and those given at the end: `end payload`), unfinished, inherited, clipped: debug annotations.
- Times: ns of CLOCK_MONOTONIC with snapshots of CLOCK_REALTIME, so that a trace of another recorder can be merged.

## What is lost
See LOSES. Nothing is rounded.
"""

from __future__ import annotations

import ctypes
import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warpline.errors import ReportError
from warpline.exporters.debug_annotations import NAMES, encoded
from warpline.exporters.protobuf import message, number, text
from warpline.exporters.samples import counters, samples
from warpline.exporters.tracks import MARK_COLUMNS, RANGE_COLUMNS, Tracks, batches, values
from warpline.query.native import codes, library

if TYPE_CHECKING:
    from warpline.query import Report

SUFFIX = ".perfetto-trace"
LOSES: tuple[str, ...] = (
    "colours are shown as an annotation, Perfetto picks its own",
    "the thread on which a start/end range ended",
    "payloads of counter samples, and what of a payload's array is beyond 1,000 values",
    "when a counter had no value, and what holds between its samples",
    "the range that was open where a task was made",
    "named objects and what was done to them, layouts of payloads",
    "diagnostics and targets",
)

# Field numbers of perfetto/trace/trace_packet.proto and the messages below it.
_PACKET = 1
_CLOCK_SNAPSHOT, _SEQUENCE, _INTERNED, _FLAGS, _DEFAULTS, _DESCRIPTOR = 6, 10, 12, 13, 59, 60
_REALTIME, _MONOTONIC = 1, 3
_CATEGORY, _NAME, _ANNOTATION = 1, 2, 3
_BYTES, _NS = 3, 1  # of CounterDescriptor.unit
_MERGE_BY_KEY = 3


class _Batch(ctypes.Structure):
    _fields_ = [
        ("rows", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *("family", "id", "parent", "start", "end", "name", "name_ids", "domain", "domain_ids", "category", "category_ids"),
                *("color", "has_color", "payload_int", "has_int", "payload_float", "has_float", "flags", "more", "more_offsets"),
            )
        ),
    ]


class _Samples(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int64), *((name, ctypes.c_void_p) for name in ("track", "time", "whole", "real", "is_float"))]


def write(report: Report, out: Path) -> None:
    """Write the report as a Perfetto trace."""
    with open(out, "wb", buffering=1 << 20) as file:
        _Writer(report, file).run()


class _Writer:
    def __init__(self, report: Report, file: BinaryIO) -> None:
        self.report = report
        self.file = file
        self.tracks = Tracks(report)
        self.names = _Interned(_NAME)
        self.categories = _Interned(_CATEGORY)
        # Ids that differ between reports, so that concatenated traces stay apart; small, for they come with every event.
        digest = int.from_bytes(hashlib.blake2b(" ".join(m.id for m in report.manifests).encode(), digest_size=8).digest(), "little")
        self.first_uuid = (digest & 0xFFFFF) << 14 | 1
        self.family_tracks: dict[int, int] = {}
        self.counters = counters(report)
        self.first_counter = self.first_uuid + len(self.tracks.processes)
        self.payloads = report.tables["payloads"] > 0
        self.sequence = 1 + (digest >> 20) % 16000

    def run(self) -> None:
        native = library()
        encoder = native.warpline_perfetto_new(self.tracks.families, self.first_counter + len(self.counters), self.sequence)
        try:
            self._head()
            for thread in sorted({task.thread for task in self.tracks.tasks}):  # tasks go below their threads
                native.warpline_perfetto_touch(encoder, thread)
            for batch in batches(self.report, "nvtx_ranges", self.tracks.columns(RANGE_COLUMNS)):
                columns = self._columns(batch, "range")
                native.warpline_perfetto_ranges(encoder, ctypes.byref(columns.struct))
                self._drain(native, encoder)
            native.warpline_perfetto_finish(encoder)
            for batch in batches(self.report, "nvtx_marks", self.tracks.columns(MARK_COLUMNS)):
                columns = self._columns(batch, "mark")
                native.warpline_perfetto_marks(encoder, ctypes.byref(columns.struct))
                self._drain(native, encoder)
            for piece in samples(self.report, self.counters) if self.counters else ():
                arrays = [(piece.counter + self.first_counter).astype(np.uint64), piece.time, piece.whole, piece.real, piece.is_float]
                given = _Samples(len(piece.time), *(array.ctypes.data for array in arrays))
                native.warpline_perfetto_samples(encoder, ctypes.byref(given))
                self._drain(native, encoder)
            self._drain(native, encoder)
        finally:
            native.warpline_perfetto_free(encoder)

    def _packet(self, *parts: bytes) -> None:
        self.file.write(message(_PACKET, *parts, number(_SEQUENCE, self.sequence)))

    def _head(self) -> None:
        for index, (monotonic, realtime) in enumerate(self._clocks()):
            clocks = (message(1, number(1, clock), number(2, time)) for clock, time in ((_MONOTONIC, monotonic), (_REALTIME, realtime)))
            primary = number(2, _MONOTONIC) if index == 0 else b""
            self.file.write(message(_PACKET, message(_CLOCK_SNAPSHOT, *clocks, primary), number(_SEQUENCE, self.sequence)))
        notes = (message(_ANNOTATION, number(1, index), text(2, name)) for index, name in enumerate(NAMES, 1))
        self._packet(number(_FLAGS, 1), message(_DEFAULTS, number(58, _MONOTONIC)), message(_INTERNED, *notes))
        for index, process in enumerate(self.tracks.processes):
            words = (text(2, word) for word in _words(process.command))
            described = message(3, number(1, process.pid), *words, text(6, process.name))
            self._packet(message(_DESCRIPTOR, number(1, self.first_uuid + index), described))
        places = {process.key: index for index, process in enumerate(self.tracks.processes)}
        for index, counter in enumerate(self.counters):
            if counter.process not in places:
                raise ReportError(f"{self.report.path} is broken: the counter {counter.name} is of no process of the report")
            parent = number(5, self.first_uuid + places[counter.process])
            about = (text(2, counter.name), *([text(14, counter.description)] if counter.description else []))
            described = message(8, *_unit(counter.unit), *([number(5, 1)] if counter.delta else []))
            self._packet(message(_DESCRIPTOR, number(1, self.first_counter + index), parent, *about, described))

    def _clocks(self) -> list[tuple[int, int]]:
        first = self.report.manifests[0]
        rows = self.report.table("clocks", ["host", "monotonic", "realtime"]).to_pylist()
        found = [(row["monotonic"], row["realtime"]) for row in rows if row["host"] == first.host]
        return found or [(first.origin, first.origin + first.realtime_offset)]

    def _drain(self, native: ctypes.CDLL, encoder: int) -> None:
        """Write what describes the batch, then the batch."""
        new = [entry for interned in (self.names, self.categories) for entry in interned.take_new()]
        if new:
            self._packet(number(_FLAGS, 2), message(_INTERNED, *new))
        size = ctypes.c_uint64()
        fresh = native.warpline_perfetto_fresh(encoder, ctypes.byref(size))
        entries = list((ctypes.c_uint64 * (3 * size.value)).from_address(fresh)) if size.value else []
        for family, lane, uuid in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
            self.family_tracks.setdefault(family, uuid)
            self._packet(message(_DESCRIPTOR, number(1, uuid), *self._described(family, lane)))
        data = native.warpline_perfetto_bytes(encoder, ctypes.byref(size))
        if size.value:
            self.file.write((ctypes.c_char * size.value).from_address(data))
        native.warpline_perfetto_clear(encoder)

    def _described(self, family: int, lane: int) -> Iterator[bytes]:
        process, thread = self.tracks.owner(family)
        task = self.tracks.task(family)
        if task is not None:
            yield number(5, self.family_tracks[task.thread])
            yield text(2, task.name)
            # tasks may share a name, but not a track
            yield number(15, _MERGE_BY_KEY)
            yield number(17, self.family_tracks[family])
            return
        crossing = thread is not None and lane > 0
        yield number(5, self.family_tracks[family] if crossing else self.first_uuid + self.tracks.processes.index(process))
        if thread is None:
            yield text(2, "start/end ranges")
        elif lane == 0:
            yield message(4, number(1, process.pid), number(2, thread.tid), text(5, thread.name))
        else:
            yield text(2, f"{thread.name} (overlapping)")

    def _columns(self, batch: pa.RecordBatch, kind: str) -> _Columns:
        columns = _Columns(batch.num_rows)
        columns.put("family", self.tracks.family(batch))
        columns.put("start", values(batch, "start"))
        columns.codes("name", batch.column("message"), self.names, None)
        columns.codes("domain", batch.column("domain"), self.categories, "nvtx")
        columns.codes("category", _category(batch), self.categories, None)
        columns.optional("color", batch.column("color"), "has_color", np.uint32)
        more = encoded(self.report, kind, values(batch, "id", -1)) if self.payloads else []
        columns.more(more)
        # A number given at the end is among the payloads, too.
        told = pa.array([bool(text) for text in more]) if any(more) else False
        for name, mask, dtype in (("payload_int", "has_int", np.int64), ("payload_float", "has_float", np.float64)):
            columns.optional(name, pc.if_else(told, None, batch.column(name)), mask, dtype)
        if kind == "range":
            columns.put("id", values(batch, "id"))
            columns.put("parent", values(batch, "parent", -1))
            columns.put("end", values(batch, "end"))
            flags = [batch.column(name).to_numpy(zero_copy_only=False) for name in ("unfinished", "inherited", "clipped")]
            columns.put("flags", (flags[0] | flags[1] * 2 | flags[2] * 4).astype(np.uint8))
        return columns


class _Columns:
    """A `_Batch`, and the arrays it points into."""

    def __init__(self, rows: int) -> None:
        self.struct = _Batch(rows=rows)
        self._kept: list[npt.NDArray[Any]] = []

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        self._kept.append(array)
        setattr(self.struct, name, array.ctypes.data)

    def codes(self, name: str, column: pa.Array, interned: _Interned, missing: str | None) -> None:
        if column.null_count == len(column) and missing is None:
            return
        numbers, texts = codes(column)
        self.put(name, numbers)
        self.put(f"{name}_ids", np.array([interned.id(text) for text in [missing, *texts.to_pylist()]], np.uint64))

    def optional(self, name: str, column: pa.Array, mask: str, kind: type[np.generic]) -> None:
        if column.null_count == len(column):
            return
        filled = pc.fill_null(column, 0) if column.null_count else column
        self.put(name, np.ascontiguousarray(filled.to_numpy(zero_copy_only=False), kind))
        if column.null_count:
            self.put(mask, column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8))

    def more(self, texts: list[bytes]) -> None:
        """Put encoded fields behind the events of the rows."""
        if any(texts):
            self.put("more_offsets", np.cumsum([0, *map(len, texts)], dtype=np.int64))
            self.put("more", np.frombuffer(b"".join(texts), np.uint8))


class _Interned:
    """Numbers strings from 1 in one list of InternedData; 0 is none."""

    def __init__(self, field: int) -> None:
        self._field = field
        self._ids: dict[str, int] = {}
        self._new: list[bytes] = []

    def id(self, value: str | None) -> int:
        if value is None:
            return 0
        known = self._ids.get(value)
        if known is None:
            known = self._ids[value] = len(self._ids) + 1
            self._new.append(message(self._field, number(1, known), text(2, value)))
        return known

    def take_new(self) -> list[bytes]:
        new, self._new = self._new, []
        return new


def _category(batch: pa.RecordBatch) -> pa.Array:
    """The category's name, or its number where it has no name."""
    column = batch.column("category")
    ids = batch.column("category_id")
    if ids.null_count == len(ids) or column.null_count == ids.null_count:
        return column
    return pc.coalesce(pc.cast(column, pa.string()), pc.cast(ids, pa.string()))


def _unit(unit: str) -> list[bytes]:
    if not unit:
        return []
    known = _BYTES if unit.lower() in ("bytes", "byte", "b") else _NS if unit.lower() in ("ns", "nanoseconds") else None
    return [text(6, unit)] if known is None else [number(3, known)]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return [command]
