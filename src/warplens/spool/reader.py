"""Reads one spool file: the recording of one process, as far as it is whole."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.errors import SpoolError
from warplens.handover import untrusted
from warplens.spool import chunks as chunking
from warplens.spool import definitions, layout, losses, packed, wide
from warplens.spool.chunks import Chunk
from warplens.spool.definitions import Definitions, Row
from warplens.spool.events import NEVER, OPEN_FACTS, Events
from warplens.spool.kernels.buffers import Pieces
from warplens.spool.layout import Head, Layouts
from warplens.spool.notes import Note
from warplens.spool.process import Process, read_process
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords
from warplens.spool.windows import CaptureWindows

Span = tuple[int, int]
UNKNOWN_THREAD = (1 << 24) - 1
_LATEST = 1 << 62
_CLIPPED = 0x20  # of a record's flags
_BLOCK = 1 << 16
_ON_CPU = ("cuda_api", "cpu_sample", "os_call", "gil", "python_span")
_CLOSED = 0x40  # flag of a slot whose range has ended; there was no space to write it elsewhere


@dataclass
class SpoolNames:
    """Names of the spool's threads, domains and categories; values are string ids."""

    threads: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # index -> tid, name, first seen
    tids: dict[int, int] = field(default_factory=dict)  # by NVTX
    by_python: dict[int, int] = field(default_factory=dict)  # of the same threads
    domains: dict[int, int] = field(default_factory=dict)
    categories: dict[tuple[int, int], int] = field(default_factory=dict)
    defines: list[Row] = field(default_factory=list)
    unknown: int = 0


@dataclass(frozen=True)
class Bounds:
    """Facts about the recording of a process that are not in its spool.

    Times are ns on the raw clock of its spool.

    `ended`: when the process ended, 0: unknown. `until`: when the recording was over and the process went on: what it did later counts
    only as the end of a range. `windows`: those of the capture: ranges that were open at the end and overlap none are left out. `only`:
    sorted and disjoint times; all events have to overlap one of them. `capture`: the options of the recording.
    """

    ended: int = 0
    until: int = _LATEST
    windows: Sequence[Span] | None = None
    only: Sequence[Span] | None = None
    capture: CaptureWindows | None = None


def identify(path: Path) -> tuple[Head, Process, Layouts]:
    """Read what a spool file says about itself and its process, and no more of it.

    Raises SpoolError as SpoolFile does.
    """
    try:
        with untrusted.opened(path) as file:
            length = os.fstat(file.fileno()).st_size
            head = layout.read_head(file.read(layout.PAGE), str(path))
            file.seek(min(head.json_offset, length))
            text = file.read(max(min(head.json_size, length - head.json_offset), 0))
    except (OSError, ValueError, MemoryError) as error:
        raise SpoolError(f"cannot read {path}: {error}") from error
    described = layout.read_description(text, str(path), head.json_offset)
    return head, read_process(described.process), described.layouts


class SpoolFile:
    """An open spool file.

    Raises SpoolError (file and offset) when it is none; anything less is read and noted.

    `changing`: a flight recorder may be writing its chunks again, so a copy in memory is read; so it is if no space was reserved, because
    the pages of a file with holes may need space even to be read. `followed`: events of this file that were read in part while its process
    went on; they stay the caller's. `going_on`: it still does, and the caller scans what is to be read.
    `taken_out`: pages of it lie in its packed copy and could not be put back, so a copy in memory is read, too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        bounds: Bounds | None = None,
        changing: bool = False,
        followed: Events | None = None,
        going_on: bool = False,
        taken_out: bool = False,
    ) -> None:
        self.path = Path(path)
        self.bounds = bounds or Bounds()
        try:
            with untrusted.opened(self.path) as file:
                self.length = os.fstat(file.fileno()).st_size
                self.head = layout.read_head(file.read(layout.PAGE), str(path))
                copied = (
                    chunking.copy(file, self.head, self.length)
                    if changing or self.head.buffered or taken_out
                    else None
                )
                if copied is not None and taken_out:
                    packed.fill(self.path, copied)
                self._mapped = copied or mmap.mmap(file.fileno(), self.length, access=mmap.ACCESS_READ)
        except (OSError, ValueError, MemoryError) as error:
            raise SpoolError(f"cannot read {path}: {error}") from error
        self._memory: npt.NDArray[np.uint8] = np.frombuffer(self._mapped, np.uint8)
        self._events: Events | None = None
        self._followed, self._going_on = followed, going_on
        try:
            start, end = self.head.json_offset, min(self.head.json_offset + self.head.json_size, self.length)
            described = layout.read_description(self._mapped[start:end], str(path), start)
        except BaseException:
            self.close()
            raise
        self.layouts = described.layouts
        self.process: Process = read_process(described.process)
        self.actions = described.actions
        self._notes: list[Note] = []
        self.last_seen = 0  # ns on the spool's clock, known once `events` was read

    def close(self) -> None:
        """Unmap the file; events and strings taken from it must not be used any more."""
        if self._events is not None:
            if self._events is not self._followed:
                self._events.close()
            self._events._memory = np.empty(0, np.uint8)
        self._memory = np.empty(0, np.uint8)
        try:
            self._mapped.close()
        except BufferError:
            pass  # a view is still held somewhere: the mapping goes with it

    def __enter__(self) -> SpoolFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks that can be read."""
        walked, damaged = chunking.walk(self._mapped, self.head, self.length)
        usable = [chunk for chunk in walked if self._fits(chunk)]
        damaged += len(walked) - len(usable)
        if damaged:
            message = (
                f"{damaged} places in {self.path.name} are damaged or truncated; everything "
                "between them was read"
            )
            self._note("warning", "spool-damaged", message, count=damaged)
        return usable

    @cached_property
    def strings(self) -> Strings:
        """The interned strings."""
        strings = Strings(self._memory, [chunk for chunk in self.chunks if chunk.kind == chunking.STRINGS])
        if strings.broken:
            self._note(
                "warning",
                "spool-damaged",
                f"{strings.broken} strings in {self.path.name} are damaged",
                count=strings.broken,
            )
        return strings

    @cached_property
    def events(self) -> Events:
        """The events, with the first pass and the open ranges done.

        While the process continues, as far as they were scanned.
        """
        self._events = events = self._followed or Events(self._memory, self._mapped, self.layouts)
        events.rebase(self._memory, self._mapped)
        if self._going_on:
            return events
        if self.bounds.only is not None:
            events.choose(self.bounds.only)
        events.young_from(NEVER)  # the process has ended: what a thread wrote last is whole
        events.scan(self.records)
        slots, facts = self._open_slots({tuple(row) for row in events.last_events().tolist()})
        closed = (slots["flags"] & _CLOSED) != 0
        last = max(
            events.counts().last,
            int(slots["end"].max(where=closed, initial=0)),
            min(self._last_call(), self.bounds.until),
        )
        starts = slots["start"]
        seen = max(int(starts.max()) if len(starts) else 0, self.head.end_ns or self.bounds.ended)
        self.last_seen = max(last, min(seen, self.bounds.until), self.process.start_ns)
        slots["end"][~closed] = np.maximum(starts[~closed], self.last_seen)
        kept = self._inside(slots)
        events.add_open(slots[kept], facts[kept])
        events.set_blob_chunks([chunk for chunk in self.chunks if chunk.kind == chunking.BLOBS])
        return events

    @property
    def records(self) -> list[Chunk]:
        """The chunks of records, in the order in which they were taken."""
        return sorted(
            (chunk for chunk in self.chunks if chunk.kind == chunking.RECORDS),
            key=lambda chunk: chunk.sequence,
        )

    def records_of(self, chunk: Chunk, first: int, count: int) -> npt.NDArray[Any]:
        """Return a view of `count` records of a chunk, from number `first` on, all as if they were ranges."""
        return np.frombuffer(
            self._mapped, self.layouts.dtypes["range"], count, chunk.offset + first * self.layouts.stride
        )

    @cached_property
    def wide(self) -> dict[str, WideRecords]:
        """The records of wide chunks, by the names of their types.

        Of types without any there is nothing.
        """
        some = [chunk for chunk in self.chunks if chunk.kind == chunking.WIDE]
        by_type, unknown = wide.read(self._memory, self._mapped, self.layouts.wide, chunks=some)
        if unknown:
            message = (
                f"{unknown} chunks of {self.path.name} hold records that this version of warplens "
                "cannot read; they are left out"
            )
            self._note("warning", "unknown-records", message, count=unknown)
        damaged = sum(records.damaged for records in by_type.values())
        if damaged:
            self._note(
                "warning",
                "spool-damaged",
                f"{damaged} records in {self.path.name} are damaged",
                count=damaged,
            )
        return by_type

    @cached_property
    def pieces(self) -> Pieces:
        """The content of the buffers of launches."""
        return Pieces(self._memory, self.chunks)

    @cached_property
    def names(self) -> SpoolNames:
        """Threads, domains and categories. A later record wins."""
        names = SpoolNames()
        offsets = self.events.meta()
        ids = self.layouts.ids
        size = self.layouts.stride
        for first in range(0, len(offsets), _BLOCK):
            some = offsets[first : first + _BLOCK].astype(np.int64)
            raw = self._memory[some[:, None] + np.arange(size)]
            kinds = raw[:, 0]
            known = np.zeros(len(some), bool)
            for kind in ("thread", "domain", "category", "thread_name", "define"):
                mine = kinds == ids[kind]
                known |= mine
                rows = np.ascontiguousarray(raw[mine]).view(self.layouts.dtypes[kind]).reshape(-1)
                _collect(names, kind, rows)
            names.unknown += int((~known).sum())
        return names

    @cached_property
    def definitions(self) -> Definitions:
        """Schemas, counters, tasks and other objects."""
        return definitions.read(self.names.defines, self.strings)

    def notes(self) -> list[Note]:
        """Lost and damaged records, of the part that was read; call it last."""
        pid = self.process.pid
        recorder = any(chunk.generation for chunk in self.chunks)
        unread = losses.unread(
            self.events.counts(), self.names.unknown, self.definitions.broken, pid=pid, recorder=recorder
        )
        lost = losses.dropped(self.head, self.layouts, self.process)
        return [*self._notes, *lost, *losses.given_up(self.head, self.process), *unread]

    def _note(self, severity: str, code: str, message: str, count: int) -> None:
        self._notes.append(Note(severity, code, "spool", message=message, count=count))

    def _last_call(self) -> int:
        """When the last call returned, or sample was taken; 0 without any.

        GPUs' times say little: they may be of a wrong clock.
        """
        last = 0
        for kind in _ON_CPU:
            if kind in self.wide:
                for _, block in self.wide[kind].blocks():
                    ends = block["end"]
                    latest = int(ends.max(initial=0))
                    last = max(
                        last, latest if latest <= _LATEST else int(ends[ends <= _LATEST].max(initial=0))
                    )
        return last

    def _fits(self, chunk: Chunk) -> bool:
        if chunk.kind == chunking.RECORDS:
            return chunk.stride == self.layouts.stride
        if chunk.kind == chunking.OPEN:
            return chunk.stride == (
                self.layouts.slot.itemsize if chunk.thread == chunking.NO_THREAD else self.layouts.stride
            )
        return True

    def _inside(self, slots: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Say which open ranges overlap a window, and flag those that cross an edge of it."""
        kept = np.ones(len(slots), bool)
        for spans in (self.bounds.only, self.bounds.windows):
            if spans is None:
                continue
            begin, close = _last_around(spans, slots["start"], slots["end"])
            kept &= close > slots["start"]
        if self.bounds.windows is not None:
            slots["flags"][kept & ((slots["start"] < begin) | (slots["end"] > close))] |= _CLIPPED
        return kept

    def open_now(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the ranges that are open now, without an end, and their `OPEN_FACTS`.

        Some may have ended in this moment.
        """
        return self._open_slots(set())

    def _open_slots(self, closed: set[tuple[int, ...]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the ranges in open slots, innermost first, and their `OPEN_FACTS`.

        Those among the last events, `closed`, are left out.
        """
        ids = self.layouts.ids
        event = self.layouts.dtypes["range"]
        closed_anywhere = {row[1:] for row in closed if row[4] == ids["start_end"]}
        slots: list[npt.NDArray[Any]] = []
        owners: list[npt.NDArray[Any]] = []
        broken = 0
        for chunk in self.chunks:
            if chunk.kind != chunking.OPEN:
                continue
            shared = chunk.thread == chunking.NO_THREAD
            dtype = self.layouts.slot if shared else event
            # A copy: the program may continue.
            table = np.frombuffer(self._mapped, dtype, chunk.size // dtype.itemsize, chunk.offset).copy()
            wanted = ids["start_end"] if shared else ids["range"]
            closed_here = (table["flags"] & _CLOSED) != 0
            known = (wanted, ids["range"], ids.get("op", wanted))
            sane = (table["start"] <= _LATEST) & np.isin(table["type"], known)
            sane &= ~closed_here | (table["end"] <= _LATEST)
            broken += int(((table["type"] != 0) & ~sane).sum())
            table = table[sane & (table["type"] != 0)]
            facts = np.zeros(len(table), OPEN_FACTS)
            for name in OPEN_FACTS.names or () if shared else ():
                facts[name] = table[name]
            if not shared:
                facts["thread"] = chunk.thread
            fresh = np.ones(len(table), bool)
            for row in range(len(table)):
                one = table[row]
                looks = (int(one["start"]), int(one["name"]), int(one["domain"]), int(one["type"]))
                fresh[row] = (
                    (looks not in closed_anywhere)
                    if shared
                    else ((min(chunk.thread, UNKNOWN_THREAD), *looks) not in closed)
                )
            rows = np.zeros(int(fresh.sum()), event)
            for name in event.names or ():
                rows[name] = table[fresh][name]
            slots.append(rows[::-1])
            owners.append(facts[fresh][::-1])
        if broken:
            self._note(
                "warning",
                "spool-damaged",
                f"{broken} open ranges in {self.path.name} are damaged",
                count=broken,
            )
        nothing = np.zeros(0, event)
        return np.concatenate([nothing, *slots[::-1]]), np.concatenate(
            [np.empty(0, OPEN_FACTS), *owners[::-1]]
        )


def _last_around(
    spans: Sequence[Span], start: npt.NDArray[Any], end: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return begin and end of the last span that begins before each range ends.

    An end of 0 if none does.
    """
    # `place` is the number of spans that begin before the range ends. With the empty span in front,
    # it is also the index of the last of them; 0 is the empty span.
    begins, ends = (np.array([0, *(span[edge] for span in sorted(spans))], np.uint64) for edge in (0, 1))
    place = np.searchsorted(begins[1:], np.maximum(end, start + 1), side="left")
    return begins[place], np.maximum.accumulate(ends)[place]


def _collect(names: SpoolNames, kind: str, rows: npt.NDArray[Any]) -> None:
    if not len(rows):
        return
    name = rows["name"].tolist()
    if kind == "thread":
        values = zip(rows["tid"].tolist(), name, rows["start"].tolist(), strict=True)
        names.threads.update(zip(rows["thread"].tolist(), values, strict=True))
    elif kind == "define":
        columns = (rows[column].tolist() for column in ("domain", "id", "start", "thread"))
        names.defines += zip(name, *columns, strict=True)
    elif kind == "domain":
        names.domains.update(zip(rows["domain"].tolist(), name, strict=True))
    elif kind == "category":
        names.categories.update(
            zip(zip(rows["domain"].tolist(), rows["category"].tolist(), strict=True), name, strict=True)
        )
    else:
        for tid, text, by_python in zip(rows["tid"].tolist(), name, rows["category"].tolist(), strict=True):
            (names.by_python if by_python else names.tids)[tid] = text
