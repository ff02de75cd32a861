"""All tables of the CPU side of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from warplens.report.chosen import Spans, Times
from warplens.report.cpu import notices, python, samples, task_samples
from warplens.report.cpu.chosen import Chosen
from warplens.report.cpu.frames import Frames
from warplens.report.cpu.opcodes import Opcodes
from warplens.report.cpu.os_calls import OsCalls
from warplens.report.cpu.reasons import Reasons
from warplens.report.enclosing import Columns
from warplens.report.place import Place
from warplens.report.symbols.lookup import Symbols
from warplens.report.threads import Threads
from warplens.spool.notes import Note
from warplens.spool.reader import SpoolFile

KINDS = ("cpu_frame", "cpu_module", "cpu_sample", "cpu_state", "os_call", "gil", "python_span", "cpu_notice")


class CpuTables:
    """Writes what a spool holds of the CPU side as the rows of process `process`; a spool without any costs nothing.

    `first`: the id of the first row of each table; `thread_base`: the key of the process's thread 0; `clock` corrects times.
    """

    def __init__(
        self,
        spool: SpoolFile,
        process: int,
        first: int,
        thread_base: int,
        write: Callable[[str, pa.Table], None],
        clock: Callable[[Times], Times],
        threads: Threads,
        symbols: Symbols | None = None,
    ) -> None:
        self._spool, self._write, self._symbols = spool, write, symbols or Symbols()
        self._wide = {kind: spool.wide[kind] for kind in KINDS if kind in spool.wide}
        self.records = sum(len(records) for records in self._wide.values())
        spans = Spans(spool.windows if spool.windows is not None else spool.only)
        self._place = Place(process, first, thread_base, clock, spool.strings, spans, threads)
        self._frames: Frames | None = None
        self._chosen: dict[str, Chosen] = {}
        if self._wide:
            self._frames = Frames(self._wide.get("cpu_frame"), self._place, spool.process.boot_id)
            for table, kind, of in (
                ("samples", "cpu_sample", samples.SAMPLES),
                ("osrt", "os_call", None),
                ("python_calls", "python_span", python.CALLS),
            ):
                if chosen := self._choose(kind, of):
                    self._chosen[table] = chosen
                    chosen.watch()

    def stacks(self, stack: npt.NDArray[Any]) -> pa.Array:
        """Return the keys of stacks, which are numbers of `cpu_frame` records, as a column; null where there is none."""
        return pa.nulls(len(stack), pa.int64()) if self._frames is None else self._frames.stacks(stack)

    def pass_by(self, ranges: Columns) -> None:
        """Look at the ranges of NVTX in the current slice, before the next one is made."""
        for chosen in self._chosen.values():
            chosen.pass_by(ranges)

    def finish(self, progress: Callable[[float], None]) -> None:
        """Write all tables, after the last slice. `progress` hears which part of the records is done."""
        done = 0
        for table, rows in self._tables():
            self._write(table, rows)
            done += rows.num_rows
            progress(min(done / max(self.records, 1), 1.0))

    def notes(self) -> list[Note]:
        """What happened to the recording of the CPU side, and what of it could not be used."""
        if self._frames is None:
            return []
        spool, pid = self._spool, self._spool.process.pid
        told = notices.notes(self._wide.get("cpu_notice"), spool.strings, pid)
        return [*told, *notices.odd(self._place.tally, self._frames.broken, self._frames.lost, pid)]

    def _tables(self) -> Iterator[tuple[str, pa.Table]]:
        if self._frames is None:
            return
        place, frames = self._place, self._frames
        opcodes = Opcodes(self._wide.get("cpu_notice"), place.strings)
        states = self._choose("cpu_state", samples.STATES)
        reasons = Reasons(states, place.strings) if states is not None else None
        for table, chosen, rows_of in (
            ("samples", self._chosen.pop("samples", None), lambda some: samples.samples(some, place, frames, opcodes)),
            ("task_samples", self._choose("cpu_sample", task_samples.TASKS), lambda some: task_samples.tasks(some, place, frames)),
            ("gil", self._choose("gil", python.GIL), lambda some: python.lock(some, reasons)),
            ("gc", self._choose("python_span", (python.GC,)), python.collections),
            ("imports", self._choose("python_span", (python.IMPORT,)), lambda some: python.imports(some, place)),
            ("python_calls", self._chosen.pop("python_calls", None), lambda some: python.calls(some, place)),
        ):
            if chosen is not None:
                for rows in rows_of(chosen):
                    yield table, rows
        calls = self._chosen.pop("osrt", None)
        if calls is not None:
            yield from OsCalls(calls, place, frames, reasons).tables()
        if states is not None and reasons is not None:
            for rows in samples.thread_states(states, reasons):
                yield "thread_states", rows
        for rows in frames.tables(self._wide.get("cpu_module"), self._symbols):
            yield "frames", rows

    def _choose(self, kind: str, of: tuple[int, ...] | None) -> Chosen | None:
        return Chosen(self._wide[kind], self._place, of=of) if kind in self._wide else None
