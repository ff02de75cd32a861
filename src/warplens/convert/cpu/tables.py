"""All tables of the CPU side of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from threading import Lock
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.chosen import Spans
from warplens.convert.cpu import notices, python, samples, task_samples
from warplens.convert.cpu.beside import Beside
from warplens.convert.cpu.chosen import Chosen, Piece
from warplens.convert.cpu.frames import Frames
from warplens.convert.cpu.opcodes import Opcodes
from warplens.convert.cpu.os_calls import OsCalls
from warplens.convert.cpu.reasons import Reasons
from warplens.convert.cpu.watched import Watched
from warplens.convert.enclosing import Columns, column
from warplens.convert.place import Place
from warplens.convert.symbols.lookup import Symbols
from warplens.convert.threads import Threads
from warplens.spool.notes import Note
from warplens.spool.process import Process
from warplens.spool.reader import Bounds
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

Make = Callable[[Piece, dict[str, pa.Array]], Iterator[tuple[str, pa.Table]]]
_LARGE = 1 << 16  # records that are worth a second thread
KINDS = ("cpu_frame", "cpu_module", "cpu_sample", "cpu_state", "os_call", "gil", "python_span", "cpu_notice")


class Source(Protocol):
    """The CPU records of a spool."""

    @property
    def wide(self) -> Mapping[str, WideRecords]:
        """The records by the names of their types."""

    @property
    def strings(self) -> Strings:
        """The strings that records name."""

    @property
    def process(self) -> Process:
        """The process and its machine."""

    @property
    def bounds(self) -> Bounds:
        """Times (ns, the raw clock) that records have to overlap.

        `windows`, or `only` where there are none. None: all count.
        """


class CpuTables:
    """Writes what a spool holds of the CPU side as the rows of process `process`.

    A spool without any costs nothing.

    `first`: the id of the first row of each table; `thread_base`: the key of the process's thread 0; `clock` corrects times.
    `most`: rows that are made at once, `at_once`: how many tables.
    """

    def __init__(
        self,
        spool: Source,
        *,
        process: int,
        first: int,
        thread_base: int,
        write: Callable[[str, pa.Table], None],
        clock: Callable[[Int64Array], Int64Array],
        threads: Threads,
        symbols: Symbols | None = None,
        most: int | None = None,
        at_once: int = 1,
    ) -> None:
        self._spool, self._write, self._symbols = spool, write, symbols or Symbols()
        self._wide = {kind: spool.wide[kind] for kind in KINDS if kind in spool.wide}
        self.records = sum(len(records) for records in self._wide.values())
        spans = Spans(spool.bounds.windows if spool.bounds.windows is not None else spool.bounds.only)
        self._place = Place(
            process,
            first,
            thread_base,
            clock=clock,
            strings=spool.strings,
            spans=spans,
            threads=threads,
            most=most,
        )
        self._frames: Frames | None = None
        if self._wide:
            self._frames = Frames(self._wide.get("cpu_frame"), self._place, spool.process)
        self._chosen: dict[tuple[str, tuple[int, ...] | None], Chosen] = {}
        self._done = 0
        self._counting = Lock()
        self._beside = Beside(at_once if self.records >= _LARGE else 1)
        self._watched = [
            (Watched(chosen, self._place), chosen, make()) for chosen, make in self._within_ranges()
        ]

    def stacks(self, stack: npt.NDArray[Any]) -> pa.Array:
        """Return the keys of stacks, which are numbers of `cpu_frame` records, as a column.

        Null where there is none.
        """
        return pa.nulls(len(stack), pa.int64()) if self._frames is None else self._frames.stacks(stack)

    def pass_by(self, ranges: Columns) -> None:
        """Read the NVTX ranges of the current slice, before the next one is made, and write rows up to its end."""
        self._beside.run(
            [
                partial(self._add, watched.pass_by(ranges), chosen, make)
                for watched, chosen, make in self._watched
            ]
        )

    def finish(self, progress: Callable[[float], None]) -> None:
        """Write what is left, after the last slice.

        `progress` hears which part of the records is done.
        """
        jobs: list[Callable[[], None]] = [
            partial(self._add, watched.finish(), chosen, make, progress=progress)
            for watched, chosen, make in self._watched
        ]
        self._watched = []
        for kind, of, maker in self._others():
            if some := self._choose(kind, of):
                jobs.append(partial(self._add_alone, some, maker, progress))
        if self._frames is not None:
            jobs.insert(0, partial(self._add_frames, self._frames))  # one file may take long
        try:
            self._beside.run(jobs)
        finally:
            self._beside.close()
        self._place.threads.name(self._spool.wide.get("cuda_thread"))

    def _add_alone(
        self, some: Chosen, maker: Callable[[Chosen], Make], progress: Callable[[float], None]
    ) -> None:
        """Write the rows of a table that have no range."""
        self._add(((piece, None) for piece in some.pieces()), some, maker(some), progress=progress)

    def _add_frames(self, frames: Frames) -> None:
        for rows in frames.tables(self._wide.get("cpu_module"), self._symbols):
            self._write("frames", rows)

    def _add(
        self,
        pieces: Iterable[tuple[Piece, Int64Array | None]],
        chosen: Chosen,
        make: Make,
        progress: Callable[[float], None] = lambda part: None,
    ) -> None:
        for piece, around in pieces:
            if self._beside.stopped:
                return
            columns = chosen.columns(piece)
            if around is not None:
                columns["range"] = column(around)
            for table, rows in make(piece, columns):
                self._write(table, rows)
            with self._counting:
                self._done += len(piece.fields)
                progress(min(self._done / max(self.records, 1), 1.0))

    def notes(self) -> list[Note]:
        """Notes about the recording of the CPU side, and its unusable records."""
        if self._frames is None:
            return []
        spool, pid = self._spool, self._spool.process.pid
        told = notices.notes(notices.read(self._wide.get("cpu_notice"), spool.strings), pid)
        return [*told, *notices.odd(self._place.tally, self._frames.broken, self._frames.lost, pid=pid)]

    def _within_ranges(self) -> Iterator[tuple[Chosen, Callable[[], Make]]]:
        """Return the tables whose rows have a range: their records, and what makes their rows."""
        place, frames = self._place, self._frames
        if frames is None:
            return
        opcodes = Opcodes.of(self._wide.get("cpu_notice"), self._spool.strings)
        makers: tuple[tuple[str, tuple[int, ...] | None, Callable[[], Make]], ...] = (
            ("cpu_sample", samples.SAMPLES, lambda: samples.Samples(place, frames, opcodes)),
            ("os_call", None, lambda: OsCalls(place, frames)),
            ("python_span", python.CALLS, lambda: python.Calls(place)),
        )
        for kind, of, make in makers:
            if chosen := self._choose(kind, of):
                yield chosen, make

    def _others(self) -> Iterator[tuple[str, tuple[int, ...], Callable[[Chosen], Make]]]:
        """Return the tables whose rows have no range.

        From which records and domains, and what makes their rows.
        """
        place, frames = self._place, self._frames
        if frames is None:
            return
        yield (
            "cpu_sample",
            task_samples.TASKS,
            lambda chosen: task_samples.TaskSamples(place, frames, task_samples.TaskLanes.of(chosen)),
        )
        yield "gil", python.GIL, lambda chosen: python.lock
        yield "python_span", (python.GC,), lambda chosen: python.collections
        yield "python_span", (python.IMPORT,), lambda chosen: python.Imports.of(chosen, place)
        calls, lock = self._choose("os_call", None), self._choose("gil", python.GIL)
        yield (
            "cpu_state",
            samples.STATES,
            lambda chosen: samples.ThreadStates(Reasons(chosen, place.strings, calls, lock=lock)),
        )

    def _choose(self, kind: str, of: tuple[int, ...] | None) -> Chosen | None:
        """Return the records of a type that become rows; None where there are none."""
        if kind in self._wide and (kind, of) not in self._chosen:
            self._chosen[kind, of] = Chosen.of(self._wide[kind], self._place, domains=of)
        chosen = self._chosen.get((kind, of))
        return chosen if chosen is not None and len(chosen) else None
