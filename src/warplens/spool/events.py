"""The events of one process, slice of time by slice of time, through the native library."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.spool import desk
from warplens.spool.chunks import Chunk
from warplens.spool.layout import Layouts
from warplens.spool.strings import Strings

_RELEASE_EVERY = 4 << 20  # bytes of mapped file read before the pages are given back

RANGES, MARKS, SAMPLES, OPERATIONS = range(4)  # the native tables
OPEN_FACTS = np.dtype([("id", "<u8"), ("parent", "<u8"), ("thread", "<u4"), ("task", "<u4")])


class Rows(NamedTuple):
    """How many rows a slice has in each table."""

    ranges: int
    marks: int
    samples: int
    operations: int


class Blobs(NamedTuple):
    """Payloads of events: of which of the events asked for, where the bytes lie in the file, how many, flags, schema."""

    event: npt.NDArray[np.uint32]
    offset: npt.NDArray[np.uint64]
    size: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint32]
    schema: npt.NDArray[np.uint64]

    def take(self, rows: slice | npt.NDArray[np.bool_]) -> Blobs:
        """Return some of them."""
        return Blobs(self.event[rows], self.offset[rows], self.size[rows], self.flags[rows], self.schema[rows])


@dataclass(frozen=True)
class Counts:
    """What a process recorded, and what was wrong with it. `first` and `last`: ns, the raw clock of the spool."""

    ranges: int
    start_ends: int
    marks: int
    samples: int
    operations: int
    damaged: int
    backwards: int
    lost_names: int
    lost_parents: int
    damaged_blobs: int
    first: int
    last: int


class Events:
    """Reads a process's events in two passes over its mapped spool, then builds the columns of one slice at a time."""

    def __init__(self, memory: npt.NDArray[np.uint8], mapped: mmap.mmap, layouts: Layouts) -> None:
        self._memory = memory
        self._mapped = mapped
        self._base = desk.address(memory)
        self._stride = layouts.stride
        layout = layouts.native()
        self._handle: int | None = desk.library()["new"](desk.address(layout))
        if not self._handle:
            raise MemoryError("the desk library ran out of memory")
        self._touched = 0
        self._read_so_far: dict[int, tuple[int, int]] = {}  # offset of a chunk -> bytes of it that were scanned, whose the next are
        self._keyed = False
        self.following = False

    def rebase(self, memory: npt.NDArray[np.uint8], mapped: mmap.mmap) -> None:
        """Go on with the same file, which was mapped anew because it has grown."""
        self._memory, self._mapped, self._base = memory, mapped, desk.address(memory)

    def close(self) -> None:
        """Free the native half."""
        if self._handle:
            desk.library()["free"](self._handle)
            self._handle = None

    def choose(self, windows: Sequence[tuple[int, int]]) -> None:
        """Before `scan`: only events that overlap one of these times (ns, the raw clock; sorted and disjoint) become rows."""
        begins, ends = (np.array([window[edge] for window in windows], np.uint64) for edge in (0, 1))
        desk.call("choose", self._handle, desk.address(begins), desk.address(ends), len(windows))

    def scan(self, chunks: Iterable[Chunk]) -> None:
        """First pass: count, find the time span and the records that are no events. Chunks are read on from where they were left."""
        for chunk in chunks:
            done, thread = self._read_so_far.get(chunk.offset, (0, chunk.thread))
            if chunk.size - done < self._stride:
                continue
            records = desk.call("scan", self._handle, self._base, chunk.offset + done, chunk.size - done, thread)
            if records:
                owner = int(desk.library()["owner"](self._handle))
                self._read_so_far[chunk.offset] = done + records * self._stride, owner
                self._touch(records * self._stride)
        self.release()

    def add_open(self, records: npt.NDArray[Any], facts: npt.NDArray[Any]) -> None:
        """Add ranges that are still open: records with an end put in, innermost first, and of each an `OPEN_FACTS`."""
        whole, facts = np.ascontiguousarray(records), np.ascontiguousarray(facts, OPEN_FACTS)
        desk.call("open", self._handle, desk.address(whole), desk.address(facts), len(whole))

    def plan(self, rows: int) -> int:
        """Second pass: cut time into slices of about `rows` events. Returns how many slices there are."""
        slices = desk.call("plan", self._handle, rows)
        segments = self._read("segments", 3, np.uint64)
        first = 0
        for number, (_, count, _) in enumerate(segments.tolist(), 1):
            self._touched += count * self._stride
            if self._touched >= _RELEASE_EVERY or number == len(segments):
                desk.call("assign", self._handle, self._base, first, number)
                first = number
                self.release()
        return slices

    def keys(self, process: int, thread_base: int, range_base: int) -> None:
        """Set the keys of this process and what its threads' and ranges' keys count from; once."""
        if self._keyed:
            return
        self._keyed = True
        desk.call("keys", self._handle, process, thread_base, range_base)

    def set_strings(self, strings: Strings) -> None:
        """Set what message ids mean."""
        desk.call("set_strings", self._handle, desk.address(strings.lookup), len(strings.lookup), len(strings.values))

    def set_clock(self, source: Int64Array, target: Int64Array) -> None:
        """Correct all times through these knots."""
        desk.call("set_clock", self._handle, desk.address(source), desk.address(target), len(source))

    def set_makers(self, makers: Mapping[int, int]) -> None:
        """Set which range (the agent's id) was open where a task was made; before the first slice."""
        tasks, ids = np.array(list(makers), np.uint32), np.array(list(makers.values()), np.uint64)
        desk.call("set_makers", self._handle, desk.address(tasks), desk.address(ids), len(tasks))

    def slice(self, number: int) -> Rows:
        """Build the columns of one slice, in order from 0."""
        rows = np.zeros(4, np.uint64)
        desk.call("slice", self._handle, self._base, number, desk.address(rows))
        self.release()
        return Rows(*rows.tolist())

    def rows_of(self, ids: Sequence[int]) -> list[int]:
        """Return the row keys of ranges by the agent's ids, -1 for those unknown; complete after the last slice."""
        wanted, rows = np.array(ids, np.uint64), np.zeros(len(ids), np.int64)
        desk.call("rows_of", self._handle, desk.address(wanted), len(wanted), desk.address(rows))
        found: list[int] = rows.tolist()
        return found

    def column(self, table: int, name: str, dtype: Any) -> npt.NDArray[Any]:
        """Return a buffer of the current slice: `start`, the validity bits `color?`, or the dictionary `message=`.

        It points into native memory that the next slice overwrites. KeyError for an unknown name.
        """
        size = np.zeros(1, np.uint64)
        at = desk.library()["column"](self._handle, table, name.encode(), desk.address(size))
        if not int(size[0]):
            return np.empty(0, dtype)
        if not at:
            raise KeyError(name)
        block = (ctypes.c_uint8 * int(size[0])).from_address(at)
        return np.frombuffer(memoryview(block), dtype)

    def set_blob_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Say where payloads may lie; offsets rise."""
        offsets, sizes = (np.array([getattr(chunk, name) for chunk in chunks], np.uint64) for name in ("offset", "size"))
        desk.call("blob_chunks", self._handle, desk.address(offsets), desk.address(sizes), len(chunks))

    def blobs(self, first: npt.NDArray[np.uint64]) -> Blobs:
        """Follow events to their payloads: `first` holds the offset of each event's first one. Damaged chains end early."""
        starts = np.ascontiguousarray(first, np.uint64)
        count = desk.call("blobs_walk", self._handle, self._base, desk.address(starts), len(starts))
        short, long = np.empty((3, count), np.uint32), np.empty((2, count), np.uint64)
        found = Blobs(short[0], long[0], short[1], short[2], long[1])
        desk.library()["blobs_found"](self._handle, *(desk.address(column) for column in found))
        return found

    def gather(self, offset: npt.NDArray[np.uint64], size: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
        """Return pieces of the file behind each other."""
        out = np.empty(int(size.sum(dtype=np.int64)), np.uint8)
        offset, size = np.ascontiguousarray(offset, np.uint64), np.ascontiguousarray(size, np.uint32)
        desk.library()["gather"](self._base, desk.address(offset), desk.address(size), len(offset), desk.address(out))
        return out

    def meta(self) -> npt.NDArray[np.uint64]:
        """Return the offsets of the records that describe something: threads, domains, categories, objects."""
        offsets = self._read("meta", 1, np.uint64).reshape(-1)
        return np.sort(offsets) if self.following else offsets  # chunks are read in the order in which they fill, then

    def last_events(self) -> npt.NDArray[np.uint64]:
        """Return thread, start, name, domain, type of the last event of each stretch of records."""
        return self._read("last_events", 5, np.uint64)

    def threads(self) -> Int64Array:
        """Return index, first start and number of events of each thread."""
        return self._read("threads", 3, np.int64)

    def tasks(self) -> Int64Array:
        """Return number, first start (2^62 where unknown) and thread of each task that ran."""
        return self._read("tasks", 3, np.int64)

    def counts(self) -> Counts:
        """Return the totals; what was lost or damaged is complete after the last slice."""
        out = np.zeros(12, np.int64)
        desk.library()["counts"](self._handle, desk.address(out))
        return Counts(*out.tolist())

    def follow(self) -> None:
        """The process goes on: instead of `plan`, `wait_for` and `cut` make slices; before the first `scan`."""
        self.following = True
        desk.library()["follow"](self._handle)

    def young_from(self, time: int) -> None:
        """What ends at `time` (ns, the raw clock) or later may end too late for the open ranges that were read."""
        desk.library()["young_from"](self._handle, time)

    def young_start(self) -> int:
        """Return the first start (ns) of what ended too late, 2^64-1 where nothing did."""
        return int(desk.library()["young_start"](self._handle))

    def wait_for(self, records: npt.NDArray[Any], facts: npt.NDArray[Any]) -> None:
        """Take the ranges that are open now, as `add_open` does: those of the next slices get ids, and rows when they end."""
        whole, facts = np.ascontiguousarray(records), np.ascontiguousarray(facts, OPEN_FACTS)
        desk.call("wait_for", self._handle, desk.address(whole), desk.address(facts), len(whole))

    def cut(self, rows: int, upper: int) -> int:
        """Make the next slice: of what starts before `upper` (ns, at most 2^64-1) about `rows` events. Returns where it ends."""
        end = int(desk.library()["cut_at"](self._handle, rows, upper))
        desk.call("cut", self._handle, self._base, end)
        self.release()
        return end

    def splits(self) -> list[int]:
        """Return before which ranges of the slice there belong others that still wait for their ends."""
        found: list[int] = self._read("splits", 1, np.uint64).reshape(-1).tolist()
        return found

    def late(self) -> int:
        """Fill the columns of ranges with those that waited until this slice; return how many there are."""
        return desk.call("late", self._handle)

    def waiting(self) -> tuple[int, int, int]:
        """Return how many ranges wait, what could not be as it was found, and how many ids of ranges are kept."""
        out = np.zeros(2, np.uint64)
        return desk.call("waiting", self._handle, desk.address(out)), int(out[0]), int(out[1])

    def release(self) -> None:
        """Give the mapped file's pages back to the system: the file stays in its cache, not in this process."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)
        self._touched = 0

    def _touch(self, size: int) -> None:
        self._touched += size
        if self._touched >= _RELEASE_EVERY:
            self.release()

    def _read(self, name: str, width: int, dtype: Any) -> npt.NDArray[Any]:
        size = desk.call(name, self._handle, None, 0)
        out = np.zeros((size, width), dtype)
        desk.call(name, self._handle, desk.address(out), size)
        return out
