"""The tables of one process: those with times slice by slice, then its definitions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert import enclosing, range_rows
from warplens.convert.cpu.tables import CpuTables
from warplens.convert.cuda.tables import CudaTables
from warplens.convert.nvtx import columns, tasks
from warplens.convert.nvtx.counters import Counters
from warplens.convert.nvtx.domains import Domains
from warplens.convert.nvtx.objects import Objects
from warplens.convert.nvtx.payloads import Payloads
from warplens.convert.nvtx.samples import Samples
from warplens.convert.nvtx.schemas import Schemas
from warplens.convert.symbols.lookup import Symbols
from warplens.convert.threads import Threads
from warplens.spool.events import MARKS, RANGES, RowCounts
from warplens.spool.notes import Note
from warplens.spool.reader import SpoolFile
from warplens.storage import schema
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS

_PAYLOADS_OF = {RANGES: "range", MARKS: "mark"}


class ProcessTables:
    """Writes what a spool holds as the rows of process `key`.

    `clock` corrects a time of the spool, `clocks` an array of them.
    """

    def __init__(
        self,
        spool: SpoolFile,
        key: int,
        *,
        write: Callable[[str, pa.Table], None],
        clock: Callable[[int], int],
        clocks: Callable[[Int64Array], Int64Array],
        symbols: Symbols | None = None,
        most: int | None = None,
        keep: Callable[[str, pa.Table], None] | None = None,
        at_once: int = 1,
    ) -> None:
        """`most`: rows of calls and samples that are made at once, `at_once`: how many tables.

        `keep`: as `write`, for tables whose memory is theirs.
        """
        first = key * RANGES_PER_PROCESS
        self._spool, self._key, self._first, self._write, self._clock = spool, key, first, write, clock
        events, definitions = spool.events, spool.definitions
        events.keys(key, key * THREADS_PER_PROCESS, first)
        events.set_strings(spool.strings)
        events.set_makers(tasks.makers(definitions))
        self._domains = Domains(spool.names, spool.strings)
        self._schemas = Schemas.of(first, definitions)
        self._counters = Counters.of(first, key, definitions, schemas=self._schemas, domains=self._domains)
        self._payloads = Payloads(key, events, self._schemas, strings=spool.strings, write=write)
        self._samples = Samples(first, events, self._counters, payloads=self._payloads, write=write)
        self._objects = Objects(
            first,
            key,
            definitions,
            domains=self._domains,
            events=events,
            actions=spool.actions,
            write=write,
            clock=clock,
        )
        threads = Threads.of_spool(spool.names, events.threads())
        base = key * THREADS_PER_PROCESS
        self._cpu = CpuTables(
            spool,
            process=key,
            first=first,
            thread_base=base,
            write=keep or write,
            clock=clocks,
            threads=threads,
            symbols=symbols,
            most=most,
            at_once=at_once,
        )
        self._cuda = CudaTables(
            spool,
            process=key,
            first=first,
            thread_base=base,
            write=write,
            clock=clocks,
            threads=threads,
            stacks=self._cpu.stacks,
            most=most,
        )
        self._intrakernel = None
        if "intrakernel_launch" in spool.wide:
            from warplens.convert.intrakernel.tables import IntrakernelTables  # few reports need it

            self._intrakernel = IntrakernelTables(
                spool, process=key, first=first, thread_base=base, write=write, clock=clocks, threads=threads
            )
            self._cuda.watch = self._intrakernel.watch

    def add(self, rows: RowCounts) -> None:
        """Write the current slice."""
        events = self._spool.events
        strings, domains = self._spool.strings, self._domains
        if rows.ranges:
            range_rows.write_slice(events, rows.ranges, strings, domains=domains, write=self._write)
            self._follow_payloads(RANGES)
        if rows.marks:
            self._write(
                "nvtx_marks",
                columns.slice_table("nvtx_marks", events, strings, domains=domains),
            )
            self._follow_payloads(MARKS)
        if rows.samples:
            self._samples.add(rows.samples)
        if rows.operations:
            self._objects.add(rows.operations)
        if rows.ranges and self.records and not events.following:
            self.pass_by(enclosing.of_slice(events))
        if events.following and (late := events.late()):
            range_rows.write_late(events, late, strings, domains=domains, write=self._write)
            self._follow_payloads(RANGES)

    def pass_by(self, ranges: enclosing.Columns) -> None:
        """Look at ranges, in order of start: calls and samples lie in them."""
        self._cuda.pass_by(ranges)
        self._cpu.pass_by(ranges)

    @property
    def records(self) -> int:
        """The number of records beside those of NVTX."""
        return self._cuda.records + self._cpu.records

    def _follow_payloads(self, table: int) -> None:
        first = self._spool.events.payloads(table)
        if first.num_rows:
            event, domain, offset = (first.column(name).to_numpy() for name in ("row", "domain", "offset"))
            self._payloads.follow(_PAYLOADS_OF[table], event, domain, offset)

    @property
    def left(self) -> float:
        """The share of the records that `finish` writes, not slice by slice."""
        counts = self._spool.events.counts()
        events = counts.ranges + counts.start_ends + counts.marks + counts.samples + counts.operations
        wide = self._cuda.records + self._cpu.records
        return wide / max(wide + events, 1)

    def finish(self, progress: Callable[[float], None] = lambda _: None) -> None:
        """Write what was defined and all of CUDA and the CPU, after the last slice.

        `progress` hears which part of that is done.
        """
        threads = self._key * THREADS_PER_PROCESS
        ran = tasks.table(
            self._key,
            threads,
            self._first,
            definitions=self._spool.definitions,
            events=self._spool.events,
            clock=self._clock,
        )
        if ran is not None:
            self._write("tasks", ran)
        for table, rows in (
            ("nvtx_schemas", self._schemas.rows(self._key, self._domains)),
            ("nvtx_counters", self._counters.rows),
            ("nvtx_objects", self._objects.finish()),
        ):
            if rows:  # most processes define nothing
                self._write(table, schema.build(table, rows))
        share = self._cuda.records / max(self._cuda.records + self._cpu.records, 1)
        self._cuda.finish(lambda part: progress(share * part))
        self._cpu.finish(lambda part: progress(share + (1 - share) * part))
        if self._intrakernel is not None:
            self._intrakernel.finish()

    def notes(self) -> list[Note]:
        """Notes about records that could not be used."""
        notes = []
        pid = self._spool.process.pid
        for why, count in self._schemas.unreadable.items():
            message = (
                f"{count} schemas of payloads cannot be decoded in process {pid}: {why}; their "
                "payloads are kept as bytes"
            )
            notes.append(Note("warning", "undecoded-schema", "report", message=message, count=count))
        if self._counters.unknown:
            count = len(self._counters.unknown)
            message = (
                f"{count} counters of process {pid} were sampled but never defined: they have no "
                "name and no unit"
            )
            notes.append(Note("warning", "unknown-counters", "report", message=message, count=count))
        if self._samples.undecoded:
            count = self._samples.undecoded
            message = (
                f"{count} counter samples of process {pid} have no known number type: their bytes "
                "are in the table payloads"
            )
            notes.append(Note("warning", "undecoded-samples", "report", message=message, count=count))
        inside = self._intrakernel.notes() if self._intrakernel is not None else []
        return notes + self._cuda.notes() + self._cpu.notes() + inside
