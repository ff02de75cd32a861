"""Converts NVTX ranges and marks of one process while it still records.

Slice by slice, in order of start.

A slice ends at a time that is over for all threads. Ranges that are open then get their ids and places, and their rows when they end. What
was taken for granted is checked: where it turns out wrong, `Surprise` says so, and the spool, which is still there, is read from its
beginning when the recording is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.convert import range_rows
from warplens.convert.giving_back import GivingBack
from warplens.convert.nvtx import columns, tasks
from warplens.convert.nvtx.domains import Domains
from warplens.model.words import counted
from warplens.spool import clock as clocks
from warplens.spool import layout
from warplens.spool.chunks import STRINGS
from warplens.spool.clock import ClockReading
from warplens.spool.events import MARKS, RANGES, Events
from warplens.spool.layout import Clock
from warplens.spool.reader import SpoolFile
from warplens.storage.available import budget
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS

ROWS_PER_SLICE = 1 << 17  # at most: DuckDB asks groups of that size in parallel; nothing interrupts them
_LEAST_ROWS = 1 << 13
_BYTES_PER_ROW = 1 << 10  # that a slice takes, all of it
_NAMES_SHARE = 0.5  # of the budget: each step reads all names
ALL = (1 << 64) - 1
_CLOSED = 0x40  # flag of a slot
_STARTED_NS = 200_000_000  # a thread that was put aside between the clock and the spool is back after that
_CLOCKS_NS = (
    1_000_000  # the counter is off CLOCK_MONOTONIC by less than that, since the clocks were last read
)
_SHORT = 0.01  # a range that is open for less than this part of the recording is not waited for: its slice is
_SHORT_NS = 1_000_000_000
_MOST_OPEN = 4096
_MOST_DEFINITIONS = 1 << 16
_MOST_IDS = 1 << 22


def rows_per_slice() -> int:
    """Return how many rows are made at once, so that they fit into the memory that there is now."""
    return min(max(budget() // _BYTES_PER_ROW, _LEAST_ROWS), ROWS_PER_SLICE)


class Surprise(Exception):
    """A process made a change that following does not support."""


@dataclass
class Follower:
    """Reads the spool at `path` as process `key` of the part that `write` writes."""

    path: Path
    key: int
    write: Callable[[str, pa.Table], None]
    begun_ns: int = 0  # when it was first seen
    events: Events | None = None
    slices: int = 0
    wrote: bool = False
    _until: int = 0  # where the last slice ended
    _read: int = 0  # bytes of chunks when it was read last
    _texts: dict[tuple[int, int | None], str | None] = field(
        default_factory=dict
    )  # names of domains and categories in the rows
    _giving_back: GivingBack = field(init=False)

    def __post_init__(self) -> None:
        self._giving_back = GivingBack(self.path)

    def grown(self) -> int:
        """Return how many bytes of chunks there are that were not there in the last step."""
        with self.path.open("rb") as file:
            return layout.read_head(file.read(layout.PAGE), str(self.path)).chunk_end - self._read

    def step(self, now: int, samples: list[ClockReading], pace: Callable[[], bool] = lambda: True) -> bool:
        """Write what is over at the time `now` (ns, CLOCK_MONOTONIC).

        Return whether there was anything.

        Raises Surprise, OSError, pyarrow's errors.

        `pace` is called after each slice, and says whether to make the next one.
        """
        with SpoolFile(self.path) as spool:
            if spool.head.buffered:
                raise Surprise("no space was reserved for it, so its file is behind")
            clock = spool.head.clock
            until = _on_spool_clock(clock, samples, now) - _CLOCKS_NS
            records, facts = spool.open_now()
            self._check_open(records)
        with SpoolFile(
            self.path, followed=self._begun(), going_on=True
        ) as spool:  # again: what ended in the meantime may be in a chunk that is new
            self._read = spool.head.chunk_end
            events = spool.events
            events.young_from(until)
            events.scan(spool.records)
            self._check(spool, events)
            last = clock.ns(samples[-1].counter) if samples and clock.kind != "monotonic" else ALL
            starts = records["start"][records["start"] > self._until].astype(np.int64)
            short = starts[starts > until - max(_SHORT_NS, int(_SHORT * (now - self.begun_ns)))]
            until = min(until - _STARTED_NS, events.young_start(), last, int(short.min(initial=ALL >> 2)))
            if until <= self._until:
                return False
            self._prepare(events, spool, samples)
            events.wait_for(records, facts)
            domains = Domains(spool.names, spool.strings)
            rows = rows_per_slice()
            while self._until < until:
                self._until = events.cut(rows, until)
                self._add(events, spool, domains)
                if not pace():
                    break
        return True

    def give_back(self) -> bool:
        """Give the space of what is in the rows back to the disk; say whether that was any.

        SpoolError.
        """
        if self.events is None or not self.wrote:
            return False
        with SpoolFile(self.path, followed=self.events, going_on=True) as spool:
            return self._giving_back.step(spool, spool.events, self._until) > 0

    def more(self, rows: int) -> bool:
        """Make the next of the last slices, of about `rows` rows; False when all is read."""
        if self.events is None or self._until == ALL:
            return False
        self._until = self.events.cut(rows, ALL)
        self.slices += 1
        return True

    def check_last(self, domains: Domains) -> None:
        """Raise Surprise if ranges still wait, or the written names differ from the present ones."""
        assert self.events is not None
        self._check_waiting(self.events, last=True)
        for (domain, category), text in self._texts.items():
            if (domains.name(domain) if category is None else domains.category(domain, category)) != text:
                raise Surprise("a domain or category was given a name after it was used")

    def close(self) -> None:
        """Let go of the events."""
        if self.events is not None:
            self.events.close()
            self.events = None

    def _begun(self) -> Events:
        if self.events is None:
            with SpoolFile(self.path) as spool:
                self.events = Events(np.empty(1, np.uint8), spool._mapped, spool.layouts)
            self.events.follow()
            self.events.keys(self.key, self.key * THREADS_PER_PROCESS, self.key * RANGES_PER_PROCESS)
        return self.events

    def _check_open(self, records: npt.NDArray[Any]) -> None:
        if len(records) > _MOST_OPEN:
            raise Surprise(f"{counted(len(records), 'range')} are open at once")
        if (records["flags"] & _CLOSED).any():
            raise Surprise("ranges could not be written: the disk is full")

    def _check(self, spool: SpoolFile, events: Events) -> None:
        counts = events.counts()
        if counts.samples or counts.operations:
            raise Surprise("it has samples of counters, or operations on objects")
        if len(events.meta()) > _MOST_DEFINITIONS:
            raise Surprise("it defines very much")
        if sum(chunk.size for chunk in spool.chunks if chunk.kind == STRINGS) > _NAMES_SHARE * budget():
            raise Surprise("its names take more memory than there is")

    def _check_waiting(self, events: Events, *, last: bool = False) -> None:
        waiting, surprises, ids = events.waiting()
        if surprises or (last and waiting):
            raise Surprise("ranges crossed, came late, or were not written")
        if ids > _MOST_IDS:
            raise Surprise("very many ranges can be named by others")

    def _prepare(self, events: Events, spool: SpoolFile, samples: list[ClockReading]) -> None:
        events.set_strings(spool.strings)
        events.set_makers(tasks.makers(spool.definitions))
        fixed = clocks.correction(spool.head.clock, samples)
        if fixed:
            events.set_clock(fixed[0], fixed[1])

    def _add(self, events: Events, spool: SpoolFile, domains: Domains) -> None:
        rows = events.slice(self.slices)
        self.slices += 1
        self._check_waiting(events)
        for table in (RANGES, MARKS):
            self._note_names(events, table, domains)
        self.wrote |= bool(rows.ranges or rows.marks)
        range_rows.write_slice(events, rows.ranges, spool.strings, domains=domains, write=self.write)
        if rows.marks:
            self.write(
                "nvtx_marks",
                columns.slice_table("nvtx_marks", events, spool.strings, domains=domains),
            )
        if late := events.late():
            self.wrote = True
            self._note_names(events, RANGES, domains)
            range_rows.write_late(events, late, spool.strings, domains=domains, write=self.write)

    def _note_names(self, events: Events, table: int, domains: Domains) -> None:
        if events.payloads(table).num_rows:
            raise Surprise("it has extended payloads")
        rows = events.table(table)
        for number in rows.column("domain").dictionary.to_pylist():
            self._texts.setdefault((number, None), domains.name(number))
        for pair in rows.column("category").dictionary.to_pylist():
            place = pair >> 32, pair & 0xFFFFFFFF
            self._texts.setdefault(place, domains.category(*place))


def _on_spool_clock(clock: Clock, samples: list[ClockReading], now: int) -> int:
    """Return the raw time of a spool (ns) at a time of CLOCK_MONOTONIC."""
    if clock.kind == "monotonic":
        return now
    if not samples:
        return 0  # nobody knows
    last = samples[-1]
    return now + clock.ns(last.counter) - last.monotonic
