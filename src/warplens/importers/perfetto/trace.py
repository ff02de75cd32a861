"""A trace as columns: what the native decoder (native/reader/perfetto/decoder.h) makes of a file."""

from __future__ import annotations

import ctypes
import mmap
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.importers.unpacking import DEFLATE, GZIP, Unpacking
from warplens.spool import desk

BEGIN, END, INSTANT, WHOLE, STAGE, WHOLE_END = 1, 2, 3, 5, 6, 7
UUID, THREAD, ASYNC, QUEUE = range(4)  # what tracks are known by
INT, UINT, DOUBLE, BOOL, TEXT, JSON = range(6)  # what annotations are
BETWEEN = "\x1f"  # the categories of an event
Numbers = npt.NDArray[Any]
_STEP = 32 << 20  # bytes between two words about progress
_GZIP = b"\x1f\x8b"
_ZSTD = 133  # the field of a compressed packet
_ARRAYS: tuple[tuple[str, str, type[np.generic]], ...] = (
    *(("events", name, kind) for name, kind in (("time", np.int64), ("track", np.uint32), ("name", np.int32))),
    *(("events", name, kind) for name, kind in (("category", np.int32), ("type", np.uint8), ("clock", np.uint8))),
    *(("notes", name, kind) for name, kind in (("event", np.uint32), ("name", np.int32), ("kind", np.uint8), ("value", np.uint64))),
    *(("flows", name, kind) for name, kind in (("event", np.uint32), ("id", np.uint64), ("ends", np.uint8))),
    *(("samples", name, kind) for name, kind in (("time", np.int64), ("track", np.uint32), ("whole", np.int64), ("real", np.float64))),
    *(("samples", name, kind) for name, kind in (("is_float", np.uint8), ("clock", np.uint8))),
    *(("tracks", name, kind) for name, kind in (("kind", np.uint8), ("first", np.uint64), ("second", np.uint64))),
    *(("tracks", name, kind) for name, kind in (("third", np.uint64), ("name", np.int32))),
    *(("others", name, kind) for name, kind in (("field", np.uint32), ("sequence", np.uint32), ("time", np.int64))),
    *(("others", name, kind) for name, kind in (("clock", np.uint8), ("offset", np.uint64))),
    ("", "clocks", np.uint64),
    ("others", "bytes", np.uint8),
)
_LOST = ("without_state", "broken", "phases", "dropped", "deep", "texts", "text_bytes")


class _Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint64)]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    loaded = desk.load()
    for name, arguments, result in (
        ("new", [], pointer),
        ("free", [pointer], None),
        ("feed", [pointer, pointer, number, number, pointer], ctypes.c_int32),
        ("arrays", [pointer, pointer, pointer, pointer], None),
        ("texts", [pointer, pointer, pointer], None),
        ("pair", [pointer, pointer, pointer], ctypes.c_int64),
        ("json", [pointer, pointer, pointer], ctypes.c_int64),
    ):
        function = getattr(loaded, f"warplens_perfetto_reader_{name}")
        function.argtypes, function.restype = arguments, result
    return loaded


@dataclass(frozen=True)
class Other:
    """A packet that is read here: number of its field, of its sequence and clock, time, and what it holds."""

    field: int
    sequence: int
    time: int
    clock: int
    data: bytes


class PerfettoTrace:
    """The columns of a trace: `events`, `notes`, `flows`, `samples`, `tracks` by name; texts by number. They live as long as it."""

    def __init__(self, source: Path, progress: Callable[[float], None]) -> None:
        self.source = source
        self.cut_at: int | None = None
        self._unpacking = Unpacking(source)
        self._native = _library()
        self._handle = self._native.warplens_perfetto_reader_new()
        if not self._handle:
            raise MemoryError("the desk library ran out of memory")
        try:
            with open(source, "rb") as file:
                packed = file.read(2) == _GZIP
                file.seek(0)
                if packed:
                    self._feed(self._whole(file.read()), progress)
                elif source.stat().st_size:
                    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                        self._feed(data, progress)
            self._take()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the columns."""
        if self._handle:
            self._native.warplens_perfetto_reader_free(self._handle)
            self._handle = None

    def __enter__(self) -> PerfettoTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pair(self, time: Int64Array) -> tuple[Int64Array, int]:
        """Return the row of the other half of each event, -1: none; and how many ends end nothing. `time`: of all, on one clock."""
        partner = np.full(len(time), -1, np.int64)
        without = self._native.warplens_perfetto_reader_pair(self._handle, time.ctypes.data, partner.ctypes.data)
        if without < 0:
            raise MemoryError("the desk library ran out of memory")
        return partner, int(without)

    def json(self, skipped: npt.NDArray[np.uint8]) -> tuple[Int64Array, pa.Array]:
        """Return the events that have annotations but those whose name (by number) is skipped, and these as JSON objects."""
        arrays = (_Array * 3)()
        if self._native.warplens_perfetto_reader_json(self._handle, skipped.ctypes.data, arrays) < 0:
            raise MemoryError("the desk library ran out of memory")
        events, offsets, raw = _copied(arrays[0], np.uint32), _copied(arrays[1], np.int64), _copied(arrays[2], np.uint8)
        return events.astype(np.int64), _strings(offsets, raw)

    def others(self, *wanted: int) -> list[Other]:
        """Return the packets of some kinds, in the order of the file."""
        columns, data = self.columns["others"], self._others
        ends = np.append(columns["offset"][1:], len(data)).astype(np.int64)
        return [
            Other(
                int(columns["field"][row]),
                int(columns["sequence"][row]),
                int(columns["time"][row]),
                int(columns["clock"][row]),
                data[int(columns["offset"][row]) : int(ends[row])].tobytes(),
            )
            for row in np.flatnonzero(np.isin(columns["field"], wanted)).tolist()
        ]

    def text(self, number: int) -> str | None:
        """Return a text; None for -1."""
        value: str | None = None if number < 0 else self.texts[number].as_py()
        return value

    def number(self, text: str) -> int:
        """Return the number of a text, -2 where the trace lacks it."""
        return self._numbers.get(text, -2)

    def _feed(self, data: Any, progress: Callable[[float], None], *, within: bool = False) -> None:
        view = np.frombuffer(data, np.uint8)
        progress_made = (ctypes.c_uint64 * 4)()
        at = 0
        try:
            while at < len(view):
                where = view.ctypes.data + at
                status = self._native.warplens_perfetto_reader_feed(self._handle, where, len(view) - at, _STEP, progress_made)
                if status < 0:
                    raise MemoryError("the desk library ran out of memory")
                if status == 1:
                    self._packed(
                        view[at + progress_made[1] : at + progress_made[1] + progress_made[2]].tobytes(), int(progress_made[3]), progress
                    )
                at += int(progress_made[0])
                if not within:
                    progress(at / len(view))
                if status == 2:
                    self.cut_at = at
                    return
        finally:
            del view  # a map cannot be closed while there is a view of it

    def _packed(self, data: bytes, kind: int, progress: Callable[[float], None]) -> None:
        if kind == _ZSTD:
            raise ReportError(
                f"{self.source} holds packets compressed with zstd, which cannot be read; convert it with `traceconv decompress_packets`."
            )
        try:
            self._feed(self._unpacked(data, DEFLATE)[0], progress, within=True)
        except zlib.error as error:
            raise ReportError(f"{self.source} is broken: a compressed packet in it is damaged ({error}).") from error

    def _whole(self, data: bytes) -> bytearray:
        """Return what is packed with gzip, all members of it, without the zeros behind the last."""
        unpacked_data = bytearray()
        try:
            while data := data.lstrip(b"\0"):
                unpacked, data = self._unpacked(data, GZIP)
                unpacked_data += unpacked
        except zlib.error as error:
            raise ReportError(f"{self.source} is broken: {error}.") from error
        return unpacked_data

    def _unpacked(self, data: bytes, kind: int) -> tuple[bytearray, bytes]:
        """Return what is packed, and what lies behind it. Raises zlib.error, ReportError."""
        unpacked, unpack = bytearray(), self._unpacking.begin(kind)
        for piece in self._unpacking.pieces(unpack, data):
            unpacked += piece
        if not unpack.eof:
            raise zlib.error("it is cut off")
        return unpacked, unpack.unused_data

    def _take(self) -> None:
        arrays = (_Array * len(_ARRAYS))()
        lost = (ctypes.c_uint64 * len(_LOST))()
        left_out = (ctypes.c_uint64 * 1024)()
        self._native.warplens_perfetto_reader_arrays(self._handle, arrays, lost, left_out)
        self.columns: dict[str, dict[str, Numbers]] = {}
        for (group, name, kind), array in zip(_ARRAYS, arrays, strict=True):
            self.columns.setdefault(group, {})[name] = _viewed(array, kind)
        self._others = self.columns["others"].pop("bytes")
        self.clocks = [int(key) for key in self.columns[""]["clocks"]]
        self.events, self.notes, self.flows = (self.columns[name] for name in ("events", "notes", "flows"))
        self.samples, self.tracks = self.columns["samples"], self.columns["tracks"]
        self.lost = dict(zip(_LOST, map(int, lost), strict=True))
        self.left_out = {field: int(count) for field, count in enumerate(left_out) if count}
        raw, offsets = np.empty(max(self.lost["text_bytes"], 1), np.uint8), np.empty(self.lost["texts"] + 1, np.int64)
        self._native.warplens_perfetto_reader_texts(self._handle, raw.ctypes.data, offsets.ctypes.data)
        self.texts = _strings(offsets, raw)
        self._numbers = {text: number for number, text in enumerate(self.texts.to_pylist())} if len(self.texts) < 1 << 20 else {}


def _viewed(array: _Array, kind: type[np.generic]) -> Numbers:
    if not array.size:
        return np.empty(0, kind)
    size = array.size * np.dtype(kind).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(array.data), kind)


def _copied(array: _Array, kind: type[np.generic]) -> Numbers:
    return _viewed(array, kind).copy()


def _strings(offsets: Int64Array, raw: npt.NDArray[np.uint8]) -> pa.Array:
    """Return texts; bytes that are no UTF-8 are replaced."""
    given = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(raw)])
    try:
        return given.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode(errors="replace") for value in given.to_pylist()], pa.string())
