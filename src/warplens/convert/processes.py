"""Converts processes to rows: writes their large tables, and keeps the facts for the small ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from warplens import native
from warplens.arrays import Int64Array
from warplens.convert import range_rows
from warplens.convert.following import ROWS_PER_SLICE, Follower, Surprise, rows_per_slice
from warplens.convert.gathering import Gathering
from warplens.convert.nvtx.domains import Domains
from warplens.convert.small_processes import Member, MergedTables, SmallProcesses
from warplens.convert.symbols.lookup import Symbols
from warplens.convert.timings import Timings
from warplens.errors import SpoolError
from warplens.spool import clock as clocks
from warplens.spool import small_spools
from warplens.spool.clock import ClockReading
from warplens.spool.events import Events
from warplens.spool.layout import Clock, Head, Layouts
from warplens.spool.notes import Note
from warplens.spool.process import Process
from warplens.spool.reader import UNKNOWN_THREAD, Bounds, SpoolFile
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, PartWriter

if TYPE_CHECKING:
    from warplens.convert.process_tables import ProcessTables

Correction = tuple[Int64Array, Int64Array, int]  # see clock.correction
Tell = Callable[[float], None]


class Spool(NamedTuple):
    """A spool file, and what it says about itself and its process."""

    path: Path
    process: Process
    layouts: Layouts


_UNNAMED = re.compile(r"(?:Thread|Dummy)-\d+")  # as Python names threads that the program does not name


@dataclass
class Converted:
    """A process whose tables are written.

    `begin`, `end`: when it did what is known of it first and last, ns of the report. `last_seen`:
    the last time in it, ns of its spool's clock. `bounds`: what was known of its recording. `threads`:
    rows of that table.
    """

    key: int
    process: Process
    head: Head
    begin: int
    end: int
    last_seen: int
    bounds: Bounds
    threads: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


class ClockMap:
    """The clock correction for single times, and for many."""

    def __init__(self, fixed: Correction | None) -> None:
        self.fixed = fixed

    def __call__(self, time_ns: int) -> int:
        """Correct one time."""
        if self.fixed is None or not time_ns:
            return time_ns
        return int(self.all(np.array([time_ns], np.int64))[0])

    def all(self, times: Int64Array) -> Int64Array:
        """Correct many times."""
        return (
            times
            if self.fixed is None
            else native.map_times(self.fixed[0], self.fixed[1], np.ascontiguousarray(times))
        )


@dataclass
class ProcessWriter:
    """Converts processes in order of their keys.

    `converted` has them by the names of their spool files. `changing`: a flight recorder may be
    writing their chunks again. `in_memory`: names of spool files whose pages could not be put back.
    `at_once`: how many tables are made at once, if there is enough memory.
    """

    part: PartWriter
    symbols: Symbols = field(default_factory=Symbols)
    timings: Timings = field(default_factory=Timings)
    changing: bool = False
    in_memory: frozenset[str] = frozenset()
    at_once: int = 1
    converted: dict[str, Converted] = field(default_factory=dict)
    _samples: list[ClockReading] = field(default_factory=list)
    _rows: int = 0
    _corrections: dict[Clock, ClockMap] = field(default_factory=dict)
    _small: SmallProcesses = field(default_factory=SmallProcesses)
    _later: list[_Later] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._gathering = Gathering(self.part.write)

    def begin(self, samples: list[ClockReading]) -> None:
        """Correct clocks with these readings from now on, and use the memory that is free now."""
        self._samples, self._corrections = samples, {}
        self._rows = rows_per_slice()

    def clock(self, clock: Clock) -> ClockMap:
        """Return the correction of a clock: all processes of a host have the same."""
        if clock not in self._corrections:
            self._corrections[clock] = ClockMap(clocks.correction(clock, self._samples))
        return self._corrections[clock]

    def add(
        self,
        spool: Spool,
        key: int,
        bounds: Bounds,
        follower: Follower | None = None,
        tell: Tell = lambda part: None,
    ) -> None:
        """Convert a process; a small one waits for the next. `tell` hears which part of it is done.

        Of one that was followed, threads and notes may come with `finish`.
        """
        small = None
        if follower is None and not self.changing and bounds.only is None:
            with self.timings.stage("decode"):
                small = small_spools.read(*spool)
        if small is None:
            self._convert_small()
            self._add(spool.path, key, bounds, follower=follower, tell=tell)
            return
        if not self._small.takes(small):
            self._convert_small()
        self._small.add(Member(spool.path, key, small, bounds=bounds))

    def check(self, name: str, key: int, bounds: Bounds) -> None:
        """Raise Surprise if the process of spool `name` was converted as another one."""
        one = self.converted[name]
        if one.key != key:
            raise Surprise("a process that began earlier was seen later")
        if bounds.until != one.bounds.until or bounds.only is not None:
            raise Surprise("the recording of a process is cut")
        if _cut(bounds.windows, one.last_seen) != _cut(one.bounds.windows, one.last_seen):
            raise Surprise("the windows of the capture have changed")
        self.flush()  # its rows come between those of others

    def flush(self) -> None:
        """Write what waits to be written with what comes next."""
        self._convert_small()
        with self.timings.stage("write"):
            self._gathering.finish()

    def _add(self, path: Path, key: int, bounds: Bounds, follower: Follower | None, tell: Tell) -> None:
        from warplens.convert.process_tables import ProcessTables  # small processes do without

        with ExitStack() as opened:
            spool = opened.enter_context(
                SpoolFile(
                    path,
                    bounds=bounds,
                    changing=self.changing,
                    followed=follower.events if follower is not None else None,
                    taken_out=path.name in self.in_memory,
                )
            )
            if follower is not None and (bounds.only is not None or follower.key != key):
                raise Surprise("the recording is cut, or a process that began earlier was seen later")
            clock = self.clock(spool.head.clock)
            with self.timings.stage("decode"):
                events = spool.events
                slices = _Slices(events, follower, self._rows)
                write, keep = self._gathering.add, self._gathering.keep
                if follower is not None:  # its row groups find their places one by one
                    self._gathering.finish()
                    write = keep = self.part.write
                tables = ProcessTables(
                    spool,
                    key,
                    write=write,
                    keep=keep,
                    clock=clock,
                    clocks=clock.all,
                    symbols=self.symbols,
                    most=self._rows // 2,
                    at_once=self.at_once if self._rows == ROWS_PER_SLICE else 1,
                )
                if clock.fixed:
                    events.set_clock(clock.fixed[0], clock.fixed[1])
            left = tables.left
            while slices.more():
                with self.timings.stage("order"):
                    rows = events.slice(slices.number)
                with self.timings.stage("write"):
                    tables.add(rows)
                tell((1 - left) * slices.done)
            if follower is not None:
                follower.check_last(Domains(spool.names, spool.strings))
            first = events.counts().first
            begin = spool.process.start_ns or (first if first < 1 << 62 else 0)
            converted = _converted(
                key, clock, spool.process, head=spool.head, begin=begin, last=spool.last_seen, bounds=bounds
            )
            self.converted[path.name] = converted

            def finish() -> None:
                with self.timings.stage("write"):
                    tables.finish(lambda part: tell(1 - left * (1 - part)))
                _add_notes(converted, (*spool.notes(), *tables.notes()), clock)
                _add_threads(converted, spool, clock)

            if follower is not None and tables.records:
                self._later.append(_Later(opened.pop_all(), tables, key, finish=finish))
            else:
                finish()

    def _convert_small(self) -> None:
        """Convert the processes that wait: together, or each alone where they are odd."""
        members, self._small = self._small.members, SmallProcesses()
        if members and not self._convert_together(members):
            for member in members:
                self._add(member.path, member.key, member.bounds, follower=None, tell=lambda part: None)

    def _convert_together(self, members: Sequence[Member]) -> bool:
        clock = self.clock(members[0].spool.head.clock)
        try:
            with self.timings.stage("order"):
                merged = MergedTables(members, members[0].bounds.windows, clock.all, symbols=self.symbols)
        except SpoolError:
            return False
        with self.timings.stage("write"):
            for table, rows in merged.tables:
                self._gathering.keep(table, rows)
        for member, seen, notes, threads in zip(
            members, merged.last_seen(), merged.notes(), merged.threads(), strict=True
        ):
            head, process = member.spool.head, member.spool.process
            one = _converted(
                member.key, clock, process, head=head, begin=process.start_ns, last=seen, bounds=member.bounds
            )
            _add_notes(one, notes, clock)
            for thread in threads:
                _add_thread(one, thread.index, thread.tid, name=None, start=thread.start, clock=clock)
            self.converted[member.path.name] = one
        return True

    def finish(self) -> None:
        """Write all that is left: of processes that were followed, what gets the ranges around it."""
        self.flush()
        if not self._later:
            return
        with pq.ParquetFile(self.part.close_table(range_rows.TABLE)) as file:
            for one in self._later:
                with self.timings.stage("order"):
                    for ranges in range_rows.read(
                        file, one.key * RANGES_PER_PROCESS, (one.key + 1) * RANGES_PER_PROCESS
                    ):
                        one.tables.pass_by(ranges)
                one.finish()
                one.opened.close()


@dataclass
class _Later:
    """A process whose other tables need all of its ranges."""

    opened: ExitStack
    tables: ProcessTables
    key: int
    finish: Callable[[], None]


class _Slices:
    """The slices of a process: all of them, or those that were left when it ended."""

    def __init__(self, events: Events, follower: Follower | None, rows: int) -> None:
        self._follower, self._rows = follower, rows
        self._count = events.plan(rows) if follower is None else 0
        self.number = -1

    def more(self) -> bool:
        """Go to the next one."""
        if self._follower is not None:
            going = self._follower.more(self._rows)
            self.number = self._follower.slices - 1
            return going
        self.number += 1
        return self.number < self._count

    @property
    def done(self) -> float:
        """Return the finished share of the slices, 0 to 1; 0 while their number is unknown."""
        return (self.number + 1) / self._count if self._count else 0.0


def _cut(windows: Sequence[tuple[int, int]] | None, last: int) -> list[tuple[int, int]] | None:
    """Return windows as far as they matter to a process that did nothing after `last`."""
    return (
        None if windows is None else [(begin, min(end, last + 1)) for begin, end in windows if begin <= last]
    )


def _converted(
    key: int, clock: ClockMap, process: Process, head: Head, begin: int, last: int, bounds: Bounds
) -> Converted:
    end = max(min(head.end_ns, bounds.until) if head.end_ns <= 1 << 62 else 0, last, begin)
    return Converted(key, process, head, begin=clock(begin), end=clock(end), last_seen=last, bounds=bounds)


def _add_notes(one: Converted, notes: Iterable[Note], clock: ClockMap) -> None:
    one.notes += [note if note.time is None else replace(note, time=clock(note.time)) for note in notes]


def _better_name(by_python: str | None, by_system: str | None) -> str | None:
    """Return the better name of a thread: `Thread-1 (work)` was given by nobody, so one set with prctl says more.

    The system keeps 15 bytes of a name.
    """
    unnamed = by_python is None or _UNNAMED.match(by_python) is not None
    if by_python and not (unnamed and by_system and not by_python.startswith(by_system)):
        return by_python
    return by_system or None


def _add_threads(one: Converted, spool: SpoolFile, clock: ClockMap) -> None:
    names, strings = spool.names, spool.strings
    seen = {index: first for index, first, _ in spool.events.threads().tolist()}
    for index in sorted(seen.keys() | {min(index, UNKNOWN_THREAD) for index in names.threads}):
        tid, name, start = names.threads.get(index, (0, 0, 0))
        by_nvtx = strings.get(names.tids.get(tid, 0)) if tid else None
        by_python = strings.get(names.by_python.get(tid, 0)) if tid else None
        given = by_nvtx or _better_name(by_python, strings.get(name))
        first = min(start or seen.get(index, 0), seen.get(index, start))
        _add_thread(one, index, tid, name=given, start=first, clock=clock)


def _add_thread(one: Converted, index: int, tid: int, name: str | None, start: int, clock: ClockMap) -> None:
    one.threads.append(
        {
            "thread": one.key * THREADS_PER_PROCESS + index,
            "process": one.key,
            "tid": tid & 0x7FFFFFFF,
            "name": name,
            "start": clock(min(start, 1 << 62)),
        }
    )
