"""A trace as columns, from the native decoder (native/reader/perfetto/decoder.h)."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.importers.unpacking import DEFLATE, GZIP, Unpacking

BEGIN, END, INSTANT, WHOLE, STAGE, WHOLE_END = 1, 2, 3, 5, 6, 7
UUID, THREAD, ASYNC, QUEUE, NAMED = range(5)  # what tracks are known by
INT, UINT, DOUBLE, BOOL, TEXT, JSON = range(6)  # what annotations are
BETWEEN = "\x1f"  # the categories of an event
Numbers = npt.NDArray[Any]
_STEP = 32 << 20  # bytes between two words about progress
_GZIP = b"\x1f\x8b"
_FIELDS = 1024  # numbers of the fields of packets
_ZSTD = 133  # the field of a compressed packet
_GROUPS = (
    "events",
    "notes",
    "flows",
    "samples",
    "tracks",
    "others",
    "clocks",
)  # numbered as in perfetto/reader_functions.cpp
_LOST = ("without_state", "broken", "phases", "dropped", "deep", "texts", "text_bytes")


@dataclass(frozen=True)
class Other:
    """A packet that is read here: number of its field, of its sequence and clock, time, and what it holds."""

    field: int
    sequence: int
    time: int
    clock: int
    data: bytes


class PerfettoTrace:
    """The columns of a trace: `events`, `notes`, `flows`, `samples`, `tracks` by name.

    Texts by number. They live as long as it.
    """

    def __init__(self, source: Path, progress: Callable[[float], None]) -> None:
        self.source = source
        self.cut_at: int | None = None
        self._unpacking = Unpacking(source)
        self._reader = native.make("perfetto_reader_new")
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
        self._reader.close()

    def __enter__(self) -> PerfettoTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pair(self, time: Int64Array) -> tuple[Int64Array, int]:
        """Return the row of the other half of each event, -1: none; and how many ends end nothing.

        `time`: of all, on one clock.
        """
        partner = np.full(len(time), -1, np.int64)
        without = native.call("perfetto_reader_pair", self._reader, time, partner)
        return partner, int(without)

    def json(self, skipped: npt.NDArray[np.uint8]) -> tuple[Int64Array, pa.Array]:
        """Return the events with annotations, and these as JSON objects.

        Without those whose name (by number) is skipped.
        """
        native.call("perfetto_reader_json", self._reader, skipped)
        parts = (
            native.call(f"perfetto_reader_json_{name}", self._reader)
            for name in ("events", "offsets", "bytes")
        )
        events, offsets, raw = (part.copy() for part in parts)
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
                clock=int(columns["clock"][row]),
                data=data[int(columns["offset"][row]) : int(ends[row])].tobytes(),
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
        progress_made = np.zeros(4, np.uint64)
        at = 0
        try:
            while at < len(view):
                status = native.call("perfetto_reader_feed", self._reader, view[at:], _STEP, progress_made)
                if status == 1:
                    self._packed(
                        view[at + int(progress_made[1]) :][: int(progress_made[2])].tobytes(),
                        int(progress_made[3]),
                        progress,
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
                f"{self.source} contains packets compressed with zstd, which warplens cannot read; "
                "convert it with `traceconv decompress_packets`."
            )
        try:
            self._feed(self._unpacked(data, DEFLATE)[0], progress, within=True)
        except zlib.error as error:
            raise ReportError(
                f"{self.source} is broken: a compressed packet in it is damaged ({error})."
            ) from error

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
        lost, left_out = np.zeros(len(_LOST), np.uint64), np.zeros(_FIELDS, np.uint64)
        ftrace = np.zeros(_FIELDS, np.uint64)
        native.call("perfetto_reader_facts", self._reader, lost, left_out, ftrace)
        groups = (
            native.call("perfetto_reader_columns", self._reader, number) for number in range(len(_GROUPS))
        )
        self.columns = {
            name: {
                column: values.to_numpy()
                for column, values in zip(batch.schema.names, batch.columns, strict=True)
            }
            for name, batch in zip(_GROUPS, groups, strict=True)
        }
        self._others = native.call("perfetto_reader_others", self._reader)
        self.clocks = [int(key) for key in self.columns["clocks"]["key"]]
        self.events, self.notes, self.flows = (self.columns[name] for name in ("events", "notes", "flows"))
        self.samples, self.tracks = self.columns["samples"], self.columns["tracks"]
        self.lost = dict(zip(_LOST, map(int, lost), strict=True))
        self.left_out = {field: int(count) for field, count in enumerate(left_out) if count}
        self.ftrace_left_out = {field: int(count) for field, count in enumerate(ftrace) if count}
        raw, offsets = np.empty(self.lost["text_bytes"], np.uint8), np.empty(self.lost["texts"] + 1, np.int64)
        native.call("perfetto_reader_texts", self._reader, raw, offsets)
        self.texts = _strings(offsets, raw)
        self._numbers = (
            {text: number for number, text in enumerate(self.texts.to_pylist())}
            if len(self.texts) < 1 << 20
            else {}
        )


def _strings(offsets: Int64Array, raw: npt.NDArray[np.uint8]) -> pa.Array:
    """Return texts; bytes that are no UTF-8 are replaced."""
    given = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(raw)]
    )
    try:
        return given.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode(errors="replace") for value in given.to_pylist()], pa.string())
