"""Turns a spool directory into the tables of one part, streaming the events of one process after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from warplens import native
from warplens.arrays import Int64Array
from warplens.convert import range_rows
from warplens.convert.following import Follower, Surprise, rows_per_slice
from warplens.convert.gathering import Gathering
from warplens.convert.gpu_metrics import GpuMetrics
from warplens.convert.host_metrics import HostMetrics
from warplens.convert.nvtx.domains import Domains
from warplens.convert.process_tables import ProcessTables
from warplens.convert.process_tree import Family
from warplens.convert.small_processes import FEW, Member, MergedTables, SmallProcesses
from warplens.convert.symbols.lookup import Symbols
from warplens.convert.windows import Windows
from warplens.errors import SpoolError
from warplens.handover import pending
from warplens.spool import clock as clocks
from warplens.spool import directory as spools
from warplens.spool import small_spools
from warplens.spool.events import Events
from warplens.spool.layout import Clock, Head, Layouts
from warplens.spool.notes import Note
from warplens.spool.process import Process
from warplens.spool.reader import UNKNOWN_THREAD, Bounds, SpoolFile, identify
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts, PartWriter

_LATE_S = 0.2  # buffered files are less than that behind what their processes have recorded

Progress = Callable[[str, float], None]
Correction = tuple[Int64Array, Int64Array, int]  # see clock.correction


@dataclass
class Timings:
    """Seconds spent in each stage of finishing."""

    decode: float = 0.0
    order: float = 0.0
    write: float = 0.0
    index: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the body to one stage."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - begin)


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


class _Spool(NamedTuple):
    path: Path
    process: Process
    layouts: Layouts


class Lifespan(NamedTuple):
    """When a process did what is known of it first and last, and until when that counts (ns, the spool's clock)."""

    begin: int
    last: int
    until: int


@dataclass
class _Later:
    """A process whose other tables need all of its ranges."""

    opened: ExitStack
    tables: ProcessTables
    key: int
    finish: Callable[[], None]


@dataclass
class Builder:
    """Collects the small tables while the large ones are written."""

    part: PartWriter
    directory: Path
    job: str | None = None
    progress: Progress | None = None
    timings: Timings = field(default_factory=Timings)
    unreadable: list[Path] = field(default_factory=list)
    as_of: int | None = None  # ns: the recording goes on, and this is when we look at it
    _corrections: dict[Clock, Correction | None] = field(default_factory=dict)
    followers: Mapping[str, Follower] = field(
        default_factory=dict
    )  # by the names of spool files: who wrote part of it into `part` by now
    in_memory: frozenset[str] = frozenset()  # names of spool files whose pages could not be put back
    _late: bool = False
    _symbols: Symbols = field(default_factory=Symbols)
    _processes: list[dict[str, Any]] = field(default_factory=list)
    _threads: list[dict[str, Any]] = field(default_factory=list)
    _notes: list[tuple[Note, int | None]] = field(default_factory=list)
    _later: list[_Later] = field(default_factory=list)
    _small: SmallProcesses = field(default_factory=SmallProcesses)

    def add_notes(self, notes: Iterable[Note]) -> None:
        """Add the notes about the spool as a whole."""
        self._notes += [(note, None) for note in notes]

    def build(self) -> Facts:
        """Write every table of the part and return the facts for its manifest."""
        self._gathering = Gathering(self.part.write)
        self._rows = rows_per_slice()
        self._launch = spools.read_launch(self.directory)
        self._control = spools.read_control(self.directory)
        self._windows = Windows(self._control.capture if self._control else None, self.as_of)
        self._samples = clocks.read_samples(self.directory / "clocks.jsonl")
        self._notes += [(note, None) for note in self._launch.notes]
        files = self._sorted_files()
        if self._late:
            time.sleep(_LATE_S)
        if self._windows.keeps_last:
            self._windows.keep_last(
                self.as_of or self._launch.end_ns or _last_seen([path for path, *_ in files])
            )
        self._files = files
        total = sum(path.stat().st_size for path, *_ in files) or 1
        done = 0
        spools_of = [process for _, process, _ in files]
        family = Family.of(
            self.directory, self._launch, self._control, self.part.host, spools_of, self.unreadable
        )
        if self.as_of is not None:
            family.go_on(self.as_of)
        self._family, self._processes = family, family.rows
        if self._launch.pid is not None and all(facts.pid != self._launch.pid for facts in spools_of):
            family.add_silent_primary(self.part.first_process)
        self._before = len(family.rows)
        # Of several programs that ran under the launched process's id, one after the other, the last one ended with it.
        last = max(
            (process.start_ns for _, process, _ in files if process.pid == self._launch.pid), default=0
        )
        for number, (path, process, _) in enumerate(files):
            size = path.stat().st_size
            ended = (
                self._launch.primary_end_ns
                if process.pid == self._launch.pid and process.start_ns == last
                else None
            )
            ended = family.end_of(number) or ended or self._launch.last_alive.get(path.name, 0)
            if self.as_of is not None and pending.living_writer(path):
                ended = self.as_of
            if not self._joins(number, ended):
                self._convert_small()
                self._add_process(path, number, ended, done / total, size / total)
            done += size
        self._convert_small()
        with self.timings.stage("write"):
            self._gathering.finish()
        self._finish_later()
        family.add_silent(self.part.key)
        family.link()
        self._notes += [(note, None) for note in (*family.notes, *self._symbols.notes())]
        facts = self._run_facts()
        self._notes += [
            (note, None) for note in self._windows.notes({note.code for note in self._launch.notes})
        ]
        self._write_small(facts)
        if self.progress is not None:
            self.progress("write", 1.0)
        return facts

    def _sorted_files(self) -> list[_Spool]:
        """The readable spools, the launched process first, then in order of start."""
        found = []
        unbegun = 0
        for path in spools.spool_files(self.directory):
            try:
                head, process, layouts = identify(path)
                found.append(_Spool(path, process, layouts))
                self._late |= self.as_of is not None and head.buffered
            except SpoolError as error:
                if not spools.is_begun(path):
                    unbegun += 1
                    continue
                self.unreadable.append(path)
                message = f"{error}; the file is kept in the report's raw directory"
                self._notes.append((Note("error", "spool-unreadable", "spool", message), None))
        if unbegun and self.as_of is None:
            message = f"{unbegun} processes ended in the moment in which they began to record: nothing of them is here"
            self._notes.append((Note("info", "spool-not-begun", "spool", message, unbegun), None))
        primary = self._launch.pid
        found.sort(
            key=lambda one: (
                one.process.pid != primary if primary is not None else False,
                one.process.start_ns,
                one.path.name,
            )
        )
        return found

    def _joins(self, number: int, ended: int) -> bool:
        """Say whether a process is so small that it waits to be converted with those that come next."""
        if (
            self.as_of is not None
            or self._files[number].path.name in self.followers
            or self._windows.only() is not None
        ):
            return False
        with self.timings.stage("decode"):
            one = small_spools.read(*self._files[number])
        if one is None:
            return False
        if not self._small.takes(one):
            self._convert_small()
        until = self._family.running_at(number) or small_spools.LATEST
        self._small.add(Member(number, self.part.key(self._before + number), one, ended, until))
        return True

    def _convert_small(self) -> None:
        """Convert the processes that wait, together; each alone where they are few, or anything about them is odd."""
        members, self._small = self._small.members, SmallProcesses()
        converted = None
        if len(members) >= FEW:
            mapped = _Map(self._correction(members[0].spool.head.clock))
            try:
                with self.timings.stage("order"):
                    converted = MergedTables(members, self._windows.spans(), mapped.all, self._symbols)
            except SpoolError:
                pass
        if converted is None:
            for member in members:
                self._add_process(self._files[member.number].path, member.number, member.ended, 0.0, 0.0)
            return
        with self.timings.stage("write"):
            for table, rows in converted.tables:
                self._gathering.keep(table, rows)
        for member, seen, notes, threads in zip(
            members, converted.last_seen(), converted.notes(), converted.threads(), strict=True
        ):
            key, head, process = member.key, member.spool.head, member.spool.process
            self._process_row(
                member.number, key, mapped, process, head, Lifespan(process.start_ns, seen, member.until)
            )
            self._note_correction(self._correction(head.clock), process.pid, key)
            self._add_notes(notes, key, mapped)
            for thread in threads:
                self._add_thread(key, thread.index, thread.tid, None, thread.start, mapped)

    def _add_process(self, path: Path, number: int, ended: int, done: float, share: float) -> None:
        key = self.part.key(len(self._processes))
        follower = self.followers.get(path.name)
        bounds = Bounds(
            ended=ended,
            until=self._family.running_at(number) or Bounds.until,
            windows=self._windows.spans(),
            only=self._windows.only(),
            capture=self._control.capture if self._control else None,
        )
        with ExitStack() as opened:
            spool = opened.enter_context(
                SpoolFile(
                    path,
                    bounds=bounds,
                    changing=self.as_of is not None and self._windows.capture.keep_ns > 0,
                    followed=follower.events if follower is not None else None,
                    taken_out=path.name in self.in_memory,
                )
            )
            if follower is not None and (bounds.only is not None or follower.key != key):
                raise Surprise("the recording is cut, or a process that began earlier was seen later")
            timings = self.timings
            fixed = self._correction(spool.head.clock)
            with timings.stage("decode"):
                events = spool.events
                mapped = _Map(fixed)
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
                    clock=mapped,
                    clocks=mapped.all,
                    symbols=self._symbols,
                    most=self._rows // 2,
                )
                if fixed:
                    events.set_clock(fixed[0], fixed[1])
            left = tables.left
            while slices.more():
                with timings.stage("order"):
                    rows = events.slice(slices.number)
                with timings.stage("write"):
                    tables.add(rows)
                self._tell(done + share * (1 - left) * slices.done)
            if follower is not None:
                follower.check_last(Domains(spool.names, spool.strings))
            first = events.counts().first
            begin = spool.process.start_ns or (first if first < 1 << 62 else 0)
            self._process_row(
                number, key, mapped, spool.process, spool.head, Lifespan(begin, spool.last_seen, bounds.until)
            )

            def finish() -> None:
                self._note_correction(fixed, spool.process.pid, key)
                with timings.stage("write"):
                    tables.finish(lambda part: self._tell(done + share * (1 - left * (1 - part))))
                self._add_notes((*spool.notes(), *tables.notes()), key, mapped)
                self._thread_rows(spool, key, mapped)

            if follower is not None and tables.records:
                self._later.append(_Later(opened.pop_all(), tables, key, finish))
            else:
                finish()

    def _finish_later(self) -> None:
        """Finish the processes whose ranges were written before anybody knew which calls and samples lie in them."""
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

    def _correction(self, clock: Clock) -> Correction | None:
        """Return the correction of a clock, which is the same for all processes of a host: a long run has many readings."""
        if clock not in self._corrections:
            self._corrections[clock] = clocks.correction(clock, self._samples)
        return self._corrections[clock]

    def _tell(self, done: float) -> None:
        if self.progress is not None:
            self.progress("events", done)

    def _note_correction(self, fixed: Correction | None, pid: int, key: int) -> None:
        if fixed:
            message = (
                f"the counter's conversion was up to {fixed[2]} ns off CLOCK_MONOTONIC in process {pid}; "
                f"times were corrected with {len(fixed[0])} clock readings"
            )
            self._notes.append((Note("info", "clock-corrected", "report", message, len(fixed[0])), key))

    def _add_notes(self, notes: Iterable[Note], key: int, mapped: _Map) -> None:
        self._notes += [
            (note if note.time is None else replace(note, time=mapped(note.time)), key) for note in notes
        ]

    def _process_row(
        self, number: int, key: int, mapped: _Map, facts: Process, head: Head, seen: Lifespan
    ) -> None:
        end = max(min(head.end_ns, seen.until) if head.end_ns <= 1 << 62 else 0, seen.last, seen.begin)
        self._family.add_spool(number, key, facts, mapped(seen.begin), mapped(end), head.end_ns != 0)

    def _thread_rows(self, spool: SpoolFile, key: int, mapped: _Map) -> None:
        names, strings = spool.names, spool.strings
        seen = {index: first for index, first, _ in spool.events.threads().tolist()}
        for index in sorted(seen.keys() | {min(index, UNKNOWN_THREAD) for index in names.threads}):
            tid, name, start = names.threads.get(index, (0, 0, 0))
            given = strings.get(names.tids.get(tid, 0)) if tid else None
            first = min(start or seen.get(index, 0), seen.get(index, start))
            self._add_thread(key, index, tid, given or strings.get(name) or None, first, mapped)

    def _add_thread(self, key: int, index: int, tid: int, name: str | None, start: int, mapped: _Map) -> None:
        self._threads.append(
            {
                "thread": key * THREADS_PER_PROCESS + index,
                "process": key,
                "tid": tid & 0x7FFFFFFF,
                "name": name,
                "start": mapped(min(start, 1 << 62)),
            }
        )

    def _run_facts(self) -> Facts:
        launch = self._launch
        starts = [row["start"] for row in self._processes if row["start"]]
        ends = [row["end"] for row in self._processes]
        origin = launch.start_ns or min(starts, default=0)
        offset = clocks.realtime_offset(self._samples)
        known = self._family.known()
        boot = launch.boot_id or known.boot_id
        if offset is None:
            offset = 0
            message = "the clock log is missing: this part cannot be put on the clock of other hosts"
            self._notes.append((Note("warning", "no-clock-log", "report", message), None))
        kind = self._control.clock.kind if self._control else "monotonic"
        primary = self._family.primary()
        return Facts(
            id=self.part.id,
            host=launch.host or known.host or self.part.host,
            boot_id=boot,
            job=self.job if self.job is not None else launch.job,
            command=list(launch.command or primary.command),
            origin=min([origin, *starts]) if starts else origin,
            end=max([launch.end_ns or 0, origin, *ends]),
            realtime_offset=offset,
            exit_status=launch.exit_status,
            clock=kind,
            sources=launch.sources,
            usage=launch.usage,
        )

    def _write_small(self, facts: Facts) -> None:
        with self.timings.stage("write"):
            self.part.write("processes", self._processes)
            self.part.write("threads", self._threads)
            clock = _Map(self._correction(self._control.clock) if self._control else None)
            windows = self._windows.rows(self.part.part, facts.host, facts.end, clock, self._processes)
            self.part.write("capture_windows", windows)
            self.part.write(
                "clocks",
                [
                    {
                        "host": facts.host,
                        "kind": facts.clock,
                        "counter": s.counter,
                        "monotonic": s.monotonic,
                        "realtime": s.realtime,
                    }
                    for s in self._samples
                ],
            )
            self.part.write("targets", [_target(self._launch.target, facts)])
            sampled = GpuMetrics(self.directory, facts.host)
            for columns in sampled.tables(self._windows.includes()):
                self.part.write("gpu_metrics", columns)
            memory = HostMetrics(self.directory, facts.host, self._processes)
            for columns in memory.tables(self._windows.includes()):
                self.part.write("host_metrics", columns)
            self._notes += [(note, None) for note in (*sampled.notes(), *memory.notes())]
            self.part.write("diagnostics", [_diagnostic(note, process) for note, process in self._notes])


class _Map:
    """The clock correction for single times, and for many."""

    def __init__(self, fixed: Correction | None) -> None:
        self._fixed = fixed

    def __call__(self, time_ns: int) -> int:
        if self._fixed is None or not time_ns:
            return time_ns
        return int(self.all(np.array([time_ns], np.int64))[0])

    def all(self, times: Int64Array) -> Int64Array:
        return (
            times
            if self._fixed is None
            else native.map_times(self._fixed[0], self._fixed[1], np.ascontiguousarray(times))
        )


def _last_seen(files: list[Path]) -> int:
    """Return when anything was last recorded (ns): the end of a recording whose launcher could not note it."""
    last = 0
    for path in files:
        with SpoolFile(path) as spool:
            spool.events.counts()
            last = max(last, spool.last_seen)
    return last


def _target(target: dict[str, Any], facts: Facts) -> dict[str, Any]:
    row: dict[str, Any] = {"host": facts.host, "boot_id": facts.boot_id}
    for name in ("os", "kernel", "machine", "cpu"):
        value = target.get(name)
        row[name] = value if isinstance(value, str) else ""
    for name, most in (("cpus", 1 << 31), ("memory", 1 << 62)):
        value = target.get(name)
        row[name] = value if isinstance(value, int) and 0 <= value < most else 0
    return row


def _diagnostic(note: Note, process: int | None) -> dict[str, Any]:
    return {
        "severity": note.severity,
        "code": note.code,
        "source": note.source,
        "message": note.message,
        "count": note.count,
        "process": process,
        "time": note.time,
    }
