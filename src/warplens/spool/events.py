"""Reads the events of one process, one slice of time after another, through the native library."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.spool.chunks import Chunk
from warplens.spool.layout import Layouts
from warplens.spool.strings import Strings

_RELEASE_EVERY = 4 << 20  # bytes of mapped file read before the pages are given back

RANGES, MARKS, SAMPLES, OPERATIONS, OPS = range(5)  # the native tables
NEVER = (1 << 64) - 1  # later than every time
OPEN_FACTS = np.dtype([("id", "<u8"), ("parent", "<u8"), ("thread", "<u4"), ("task", "<u4")])


class RowCounts(NamedTuple):
    """The number of rows of a slice in each table."""

    ranges: int
    marks: int
    samples: int
    operations: int


class Blobs(NamedTuple):
    """Payloads of events: the event, offset in the file, length, flags, schema."""

    event: npt.NDArray[np.uint32]
    offset: npt.NDArray[np.uint64]
    size: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint32]
    schema: npt.NDArray[np.uint64]

    def take(self, rows: slice | npt.NDArray[np.bool_]) -> Blobs:
        """Return some of them."""
        return Blobs(
            self.event[rows],
            self.offset[rows],
            self.size[rows],
            flags=self.flags[rows],
            schema=self.schema[rows],
        )


@dataclass(frozen=True)
class EventCounts:
    """The events of a process, and the errors in them.

    `first` and `last`: ns, the raw clock of the spool.
    """

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
    """Reads a process's events in two passes over its mapped spool.

    Then it builds the columns of one slice at a time.
    """

    def __init__(self, memory: npt.NDArray[np.uint8], mapped: mmap.mmap, layouts: Layouts) -> None:
        self._memory = memory
        self._mapped = mapped
        self._stride = layouts.stride
        self._timeline = native.make("events_new", layouts.native())
        self._touched = 0
        self._read_so_far: dict[
            int, tuple[int, int]
        ] = {}  # offset of a chunk -> bytes of it that were scanned, whose the next are
        self._keyed = False
        self._tables: dict[int, pa.RecordBatch] = {}  # of the current slice
        self.following = False

    def rebase(self, memory: npt.NDArray[np.uint8], mapped: mmap.mmap) -> None:
        """Go on with the same file, which was mapped again because it has grown."""
        self._memory, self._mapped = memory, mapped

    def close(self) -> None:
        """Free the native half."""
        self._tables.clear()
        self._timeline.close()

    def choose(self, windows: Sequence[tuple[int, int]]) -> None:
        """Before `scan`: keep only events that overlap one of these times.

        In ns of the raw clock; sorted and disjoint.
        """
        begins, ends = (np.array([window[edge] for window in windows], np.uint64) for edge in (0, 1))
        native.call("events_choose", self._timeline, begins, ends)

    def scan(self, chunks: Iterable[Chunk]) -> None:
        """First pass: count, find the time span and the records that are no events.

        Chunks are read on from where they were left.
        """
        for chunk in chunks:
            done, thread = self._read_so_far.get(chunk.offset, (0, chunk.thread))
            if chunk.size - done < self._stride:
                continue
            records = native.call(
                "events_scan", self._timeline, self._memory, chunk.offset + done, chunk.size - done, thread
            )
            if records:
                owner = native.call("events_owner", self._timeline)
                self._read_so_far[chunk.offset] = done + records * self._stride, owner
                self._touch(records * self._stride)
        self.release()

    def scanned(self, chunk: Chunk) -> int:
        """Return how many bytes of a chunk were read by now."""
        return self._read_so_far.get(chunk.offset, (0, 0))[0]

    def add_open(self, records: npt.NDArray[Any], facts: npt.NDArray[Any]) -> None:
        """Add open ranges: records with an added end, innermost first, and an `OPEN_FACTS` for each."""
        whole, facts = np.ascontiguousarray(records), np.ascontiguousarray(facts, OPEN_FACTS)
        native.call("events_open", self._timeline, whole.view(np.uint8), facts)

    def plan(self, rows: int) -> int:
        """Second pass: cut time into slices of about `rows` events.

        Returns how many slices there are.
        """
        slices = int(native.call("events_plan", self._timeline, rows))
        segments = self._read("segments", 3, np.uint64)
        first = 0
        for number, (_, count, _) in enumerate(segments.tolist(), 1):
            self._touched += count * self._stride
            if self._touched >= _RELEASE_EVERY or number == len(segments):
                native.call("events_assign", self._timeline, self._memory, first, number)
                first = number
                self.release()
        return slices

    def keys(self, process: int, thread_base: int, range_base: int) -> None:
        """Set the keys of this process and what its threads' and ranges' keys count from; once."""
        if self._keyed:
            return
        self._keyed = True
        native.call("events_keys", self._timeline, process, thread_base, range_base)

    def set_strings(self, strings: Strings) -> None:
        """Set what message ids mean."""
        native.call("events_set_strings", self._timeline, strings.lookup, len(strings.values))

    def set_clock(self, source: Int64Array, target: Int64Array) -> None:
        """Correct all times through these knots."""
        native.call("events_set_clock", self._timeline, source, target)

    def set_makers(self, makers: Mapping[int, int]) -> None:
        """Set which range (the agent's id) was open where a task was made.

        Before the first slice.
        """
        tasks, ids = np.array(list(makers), np.uint32), np.array(list(makers.values()), np.uint64)
        native.call("events_set_makers", self._timeline, tasks, ids)

    def slice(self, number: int) -> RowCounts:
        """Build the columns of one slice, in order from 0."""
        rows = np.zeros(4, np.uint64)
        self._tables.clear()
        native.call("events_slice", self._timeline, self._memory, number, rows)
        self.release()
        return RowCounts(*rows.tolist())

    def rows_of(self, ids: Sequence[int]) -> list[int]:
        """Return the row keys of ranges by the agent's ids, -1 for those unknown.

        Complete after the last slice.
        """
        wanted, rows = np.array(ids, np.uint64), np.zeros(len(ids), np.int64)
        native.call("events_rows_of", self._timeline, wanted, rows)
        keys: list[int] = rows.tolist()
        return keys

    def table(self, table: int) -> pa.RecordBatch:
        """Return a table of the current slice: its columns, none copied.

        Texts are codes of their places in the strings of the spool, domains of their numbers,
        categories and counters of `domain << 32 | number`.
        """
        if table not in self._tables:
            self._tables[table] = native.call("events_columns", self._timeline, table)
        return self._tables[table]

    def payloads(self, table: int) -> pa.RecordBatch:
        """Return where the extended payloads of a table of the current slice begin.

        Columns: `row` (the event's id, of a sample its row), `offset` in the file, `domain`.
        """
        return native.call("events_payloads", self._timeline, table)

    def set_blob_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Say where payloads may lie; offsets rise."""
        offsets, sizes = (
            np.array([getattr(chunk, name) for chunk in chunks], np.uint64) for name in ("offset", "size")
        )
        native.call("events_blob_chunks", self._timeline, offsets, sizes)

    def blobs(self, first: npt.NDArray[np.uint64]) -> Blobs:
        """Follow events to their payloads: `first` holds the offset of each event's first one.

        Damaged chains end early.
        """
        starts = np.ascontiguousarray(first, np.uint64)
        batch = native.call("events_blobs", self._timeline, self._memory, starts)
        return Blobs(**dict(zip(batch.schema.names, map(pa.Array.to_numpy, batch.columns), strict=True)))

    def gather(self, offset: npt.NDArray[np.uint64], size: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
        """Return pieces of the file behind each other."""
        out = np.empty(int(size.sum(dtype=np.int64)), np.uint8)
        offset, size = np.ascontiguousarray(offset, np.uint64), np.ascontiguousarray(size, np.uint32)
        native.call("gather", self._memory, offset, size, out)
        return out

    def meta(self) -> npt.NDArray[np.uint64]:
        """Return the offsets of the describing records: threads, domains, categories, objects."""
        offsets = self._read("meta", 1, np.uint64).reshape(-1)
        return (
            np.sort(offsets) if self.following else offsets
        )  # chunks are read in the order in which they fill, then

    def last_events(self) -> npt.NDArray[np.uint64]:
        """Return thread, start, name, domain, type of the last event of each stretch of records."""
        return self._read("last_events", 5, np.uint64)

    def threads(self) -> Int64Array:
        """Return index, first start and number of events of each thread."""
        return self._read("threads", 3, np.int64)

    def tasks(self) -> Int64Array:
        """Return number, first start (2^62 where unknown) and thread of each task that ran."""
        return self._read("tasks", 3, np.int64)

    def counts(self) -> EventCounts:
        """Return the totals; what was lost or damaged is complete after the last slice."""
        out = np.zeros(12, np.int64)
        native.call("events_counts", self._timeline, out)
        return EventCounts(*out.tolist())

    def follow(self) -> None:
        """The process continues: instead of `plan`, `wait_for` and `cut` make slices.

        Before the first `scan`.
        """
        self.following = True
        native.call("events_follow", self._timeline)

    def young_from(self, time: int) -> None:
        """Set the time (ns, the raw clock) from which an end may be too late.

        Too late for the open ranges that were read.
        """
        native.call("events_young_from", self._timeline, time)

    def young_start(self) -> int:
        """Return the first start (ns) of the ranges that ended too late, or 2^64-1."""
        return int(native.call("events_young_start", self._timeline))

    def wait_for(self, records: npt.NDArray[Any], facts: npt.NDArray[Any]) -> None:
        """Take the ranges that are open now, as `add_open` does.

        In the next slices they get ids, and rows when they end.
        """
        whole, facts = np.ascontiguousarray(records), np.ascontiguousarray(facts, OPEN_FACTS)
        native.call("events_wait_for", self._timeline, whole.view(np.uint8), facts)

    def cut(self, rows: int, upper: int) -> int:
        """Make the next slice of about `rows` events that start before `upper`.

        Return where it ends. `upper`: ns, at most 2^64-1.
        """
        end = int(native.call("events_cut_at", self._timeline, rows, upper))
        native.call("events_cut", self._timeline, self._memory, end)
        self.release()
        return end

    def splits(self) -> list[int]:
        """Return before which ranges of the slice there belong others that still wait for their ends."""
        numbers: list[int] = self._read("splits", 1, np.uint64).reshape(-1).tolist()
        return numbers

    def late(self) -> int:
        """Fill the columns of ranges with those that waited until this slice.

        Return how many there are.
        """
        self._tables.clear()
        return int(native.call("events_late", self._timeline))

    def waiting(self) -> tuple[int, int, int]:
        """Return how many ranges wait, how many records were repaired, and how many range ids are kept."""
        out = np.zeros(3, np.uint64)
        native.call("events_waiting", self._timeline, out)
        return int(out[0]), int(out[1]), int(out[2])

    def release(self) -> None:
        """Give the mapped file's pages back to the system.

        The file stays in its cache, not in this process.
        """
        if hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)
        self._touched = 0

    def _touch(self, size: int) -> None:
        self._touched += size
        if self._touched >= _RELEASE_EVERY:
            self.release()

    def _read(self, name: str, width: int, dtype: Any) -> npt.NDArray[Any]:
        size = native.call(f"events_{name}", self._timeline, None)
        out = np.zeros((size, width), dtype)
        native.call(f"events_{name}", self._timeline, out)
        return out
