"""Converts a spool directory to the tables of one part, streaming the events of one process after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplens.convert.cpu.beside import cores
from warplens.convert.following import Follower
from warplens.convert.gpu_metrics import GpuMetrics
from warplens.convert.host_metrics import HostMetrics
from warplens.convert.process_tree import Family
from warplens.convert.processes import ClockMap, Converted, ProcessWriter, Spool
from warplens.convert.timings import Progress, Timings
from warplens.convert.windows import Windows
from warplens.errors import SpoolError
from warplens.handover import pending
from warplens.spool import clock as clocks
from warplens.spool import directory as spools
from warplens.spool.layout import Clock
from warplens.spool.notes import Note
from warplens.spool.process import Process
from warplens.spool.reader import Bounds, SpoolFile, identify
from warplens.storage.writer import Facts, PartWriter

_LATE_S = 0.2  # buffered files are less than that behind what their processes have recorded


@dataclass
class Builder:
    """Collects the small tables while the large ones are written."""

    part: PartWriter
    directory: Path
    job: str | None = None
    progress: Progress | None = None
    timings: Timings = field(default_factory=Timings)
    unreadable: list[Path] = field(default_factory=list)
    as_of: int | None = None  # ns: the recording continues, and this is when we look at it
    # by the names of spool files: who wrote part of it into `part` by now
    followers: Mapping[str, Follower] = field(default_factory=dict)
    in_memory: frozenset[str] = frozenset()  # names of spool files whose pages could not be put back
    processes: ProcessWriter | None = None  # those that were converted while the recording went on
    _late: bool = False
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _threads: list[dict[str, Any]] = field(default_factory=list)
    _notes: list[tuple[Note, int | None]] = field(default_factory=list)

    def add_notes(self, notes: Iterable[Note]) -> None:
        """Add the notes about the spool as a whole."""
        self._notes += [(note, None) for note in notes]

    def build(self) -> Facts:
        """Write every table of the part and return the facts for its manifest."""
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
        processes = self._processes_of(self._windows)
        processes.begin(self._samples)
        spools_of = [process for _, process, _ in files]
        family = Family.of(
            self.directory, self._launch, self._control, self.part.host, spools_of, self.unreadable
        )
        if self.as_of is not None:
            family.go_on(self.as_of)
        self._family, self._rows = family, family.rows
        if self._launch.pid is not None and all(facts.pid != self._launch.pid for facts in spools_of):
            family.add_silent_primary(self.part.first_process)
        self._convert(files, processes)
        family.add_silent(self.part.key)
        family.link()
        self._notes += [(note, None) for note in (*family.notes, *processes.symbols.notes())]
        facts = self._run_facts()
        self._notes += [
            (note, None) for note in self._windows.notes({note.code for note in self._launch.notes})
        ]
        self._write_small(facts, processes.clock)
        if self.progress is not None:
            self.progress("write", 1.0)
        return facts

    def _convert(self, files: Sequence[Spool], processes: ProcessWriter) -> None:
        """Write the tables of all processes that are not written yet, and collect the notes about each."""
        sizes = [spool.path.stat().st_size for spool in files]
        total, done = sum(sizes) or 1, 0
        # Of several programs that ran under the launched process's id, one after the other, the last one ended with it.
        last = max((one.start_ns for _, one, _ in files if one.pid == self._launch.pid), default=0)
        before = len(self._family.rows)
        for number, spool in enumerate(files):
            bounds = self._bounds(number, spool, last)
            key, name = self.part.key(before + number), spool.path.name
            if name in processes.converted:
                processes.check(name, key, bounds)
            else:
                tell = self._teller(done / total, sizes[number] / total)
                processes.add(spool, key, bounds, self.followers.get(name), tell)
            done += sizes[number]
        processes.finish()
        for number, spool in enumerate(files):
            self._take(number, spool.process, processes.converted[spool.path.name], processes=processes)

    def _bounds(self, number: int, spool: Spool, last: int) -> Bounds:
        """Return what is known of the recording of a process.

        `last`: when the last program began that had the launched process's id.
        """
        launch, (path, process, _) = self._launch, spool
        primary = process.pid == launch.pid and process.start_ns == last
        ended = (
            self._family.end_of(number)
            or (launch.primary_end_ns if primary else None)
            or launch.last_alive.get(path.name, 0)
        )
        if self.as_of is not None and pending.living_writer(path):
            ended = self.as_of
        return Bounds(
            ended=ended,
            until=self._family.running_at(number) or Bounds.until,
            windows=self._windows.spans(),
            only=self._windows.only(),
            capture=self._control.capture if self._control else None,
        )

    def _sorted_files(self) -> list[Spool]:
        """The readable spools, the launched process first, then in order of start."""
        opened = []
        unbegun = 0
        for path in spools.spool_files(self.directory):
            try:
                head, process, layouts = identify(path)
                opened.append(Spool(path, process, layouts))
                self._late |= self.as_of is not None and head.buffered
            except SpoolError as error:
                if not spools.is_begun(path):
                    unbegun += 1
                    continue
                self.unreadable.append(path)
                message = f"{error}; the file is kept in the report's raw directory"
                self._notes.append((Note("error", "spool-unreadable", "spool", message=message), None))
        if unbegun and self.as_of is None:
            message = f"{unbegun} processes ended when they began to record: they have no records"
            self._notes.append(
                (Note("info", "spool-not-begun", "spool", message=message, count=unbegun), None)
            )
        primary = self._launch.pid
        opened.sort(
            key=lambda one: (
                one.process.pid != primary if primary is not None else False,
                one.process.start_ns,
                one.path.name,
            )
        )
        return opened

    def _processes_of(self, windows: Windows) -> ProcessWriter:
        """Return what converts processes, with those that it has converted by now."""
        at_once = cores() if self.as_of is None else 1  # the program needs its cores
        if self.processes is not None:
            self.processes.timings, self.processes.at_once = self.timings, at_once
            return self.processes
        return ProcessWriter(
            self.part,
            timings=self.timings,
            changing=self.as_of is not None and windows.capture.keep_ns > 0,
            in_memory=self.in_memory,
            at_once=at_once,
        )

    def _teller(self, done: float, share: float) -> Callable[[float], None]:
        """Return what hears how much is done of a process that is a share of all."""

        def tell(part: float) -> None:
            if self.progress is not None:
                self.progress("events", done + share * part)

        return tell

    def _take(self, number: int, process: Process, one: Converted, processes: ProcessWriter) -> None:
        """Take what the small tables say of a process."""
        self._family.add_spool(
            number, one.key, process, begin=one.begin, end=one.end, orderly=one.head.end_ns != 0
        )
        if fixed := processes.clock(one.head.clock).fixed:
            message = (
                f"the counter's conversion was up to {fixed[2]} ns off CLOCK_MONOTONIC in process {process.pid}; "
                f"times were corrected with {len(fixed[0])} clock readings"
            )
            self._notes.append(
                (Note("info", "clock-corrected", "report", message=message, count=len(fixed[0])), one.key)
            )
        self._notes += [(note, one.key) for note in one.notes]
        self._threads += one.threads

    def _run_facts(self) -> Facts:
        launch = self._launch
        starts = [row["start"] for row in self._rows if row["start"]]
        ends = [row["end"] for row in self._rows]
        origin = launch.start_ns or min(starts, default=0)
        offset = clocks.realtime_offset(self._samples)
        known = self._family.known()
        boot = launch.boot_id or known.boot_id
        if offset is None:
            offset = 0
            message = "the clock log is missing: this part cannot be put on the clock of other hosts"
            self._notes.append((Note("warning", "no-clock-log", "report", message=message), None))
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

    def _write_small(self, facts: Facts, clock_of: Callable[[Clock], ClockMap]) -> None:
        with self.timings.stage("write"):
            self.part.write("processes", self._rows)
            self.part.write("threads", self._threads)
            clock = clock_of(self._control.clock) if self._control else ClockMap(None)
            windows = self._windows.rows(self.part.part, facts.host, facts.end, clock, self._rows)
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
            memory = HostMetrics(self.directory, facts.host, self._rows)
            for columns in memory.tables(self._windows.includes()):
                self.part.write("host_metrics", columns)
            self._notes += [(note, None) for note in (*sampled.notes(), *memory.notes())]
            self.part.write("diagnostics", [_diagnostic(note, process) for note, process in self._notes])


def _last_seen(files: list[Path]) -> int:
    """Return the time (ns) of the last record.

    It is the end of a recording whose launcher could not note it.
    """
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
