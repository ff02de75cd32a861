"""All tables of CUDA of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.chosen import Spans
from warplens.convert.cuda import happenings, memory, notices, unanswered, waits, work
from warplens.convert.cuda.api import Api
from warplens.convert.cuda.calls import Calls
from warplens.convert.cuda.captured import Captured
from warplens.convert.cuda.hardware import Hardware, Seen
from warplens.convert.cuda.own import own_calls
from warplens.convert.cuda.place import CudaPlace
from warplens.convert.cuda.unanswered import Asked
from warplens.convert.enclosing import Columns
from warplens.convert.place import Tally
from warplens.convert.threads import Threads
from warplens.spool import losses
from warplens.spool.notes import Note
from warplens.spool.reader import SpoolFile
from warplens.spool.wide import WideRecords

RowsOf = Callable[[npt.NDArray[Any], work.Columns], pa.Table]

_WORK: dict[str, tuple[str, RowsOf]] = {
    "cuda_memcpy": ("memcpys", work.memcpys),
    "cuda_memset": ("memsets", work.memsets),
    "cuda_graph": ("graphs", work.graphs),
}
_OTHERS: dict[str, tuple[str, Callable[[WideRecords, CudaPlace], Iterator[pa.Table]]]] = {
    "cuda_sync": ("syncs", waits.syncs),
    "cuda_event": ("cuda_events", waits.events),
    "cuda_memory": ("gpu_memory", memory.table),
    "cuda_um": ("um_events", happenings.unified_memory),
    "cuda_overhead": ("overhead", happenings.overhead),
    "cuda_external": ("external_ids", happenings.external_ids),
}


class CudaTables:
    """Writes what a spool holds of CUDA as the rows of process `process`.

    A spool without any costs nothing.

    `first`: the id of the first row of each table;
    `stacks` makes a column of numbers of stacks; `thread_base`: the key of the process's thread 0; `clock` corrects times.
    `most`: rows that are made at once.
    """

    def __init__(
        self,
        spool: SpoolFile,
        *,
        process: int,
        first: int,
        thread_base: int,
        write: Callable[[str, pa.Table], None],
        clock: Callable[[Int64Array], Int64Array],
        threads: Threads,
        stacks: Callable[[npt.NDArray[Any]], pa.Array] = lambda stack: pa.nulls(len(stack), pa.int64()),
        most: int | None = None,
    ) -> None:
        self._spool, self._write = spool, write
        self._done = 0
        self.watch: Callable[[npt.NDArray[Any], work.Columns], None] | None = None  # is shown all kernels
        self._wide = {kind: records for kind, records in spool.wide.items() if kind.startswith("cuda_")}
        self._place: CudaPlace | None = None
        self._api: Api | None = None
        self._kernels = work.Kernels(spool.strings)
        if not self._wide:
            return
        spans = Spans(spool.bounds.windows if spool.bounds.windows is not None else spool.bounds.only)
        asked = spool.bounds.capture
        all_apis = asked.all_apis if asked else None
        own = own_calls(spool.wide)
        calls = Calls.of(
            self._wide.get("cuda_api"),
            spans,
            threads,
            began=spool.process.start_ns,
            all_apis=all_apis,
            own=own,
        )
        threads.name(self._wide.get("cuda_thread"))
        tally = Tally(damaged=calls.damaged)
        asked_of = Asked(calls, spool.strings)
        self._place = CudaPlace(
            process,
            first,
            thread_base,
            clock=clock,
            strings=spool.strings,
            spans=spans,
            threads=threads,
            most=most,
            calls=calls,
            captured=Captured.of(self._wide.get("cuda_graph_node"), self._wide.get("cuda_api"), calls),
            asked=asked_of,
            tally=tally,
        )
        if "cuda_api" in self._wide:
            self._api = Api(
                self._wide["cuda_api"], self._place, self._wide.get("cuda_backtrace"), stacks=stacks
            )

    def pass_by(self, ranges: Columns) -> None:
        """Look at the ranges of NVTX in the current slice, before the next one is made."""
        if self._api is not None:
            self._api.pass_by(ranges)

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(len(records) for records in self._wide.values())

    def finish(self, progress: Callable[[float], None]) -> None:
        """Write all tables, after the last slice.

        `progress` hears which part of the records is done.
        """
        for rows in self._finish():
            self._done += rows
            progress(self._done / max(self.records, 1))

    def _finish(self) -> Iterator[int]:
        """Write all tables, and return of each piece how many rows it has."""
        place = self._place
        if place is None:
            return
        if self._api is not None:
            for rows in self._api.finish():
                self._write("cuda_api", rows)
                yield rows.num_rows
            self._api = None
            place.calls.written()
        seen = Seen()
        working: dict[str, tuple[str, RowsOf]] = {"cuda_kernel": ("kernels", self._kernels), **_WORK}
        for kind, (table, rows_of) in working.items():
            if kind in self._wide:
                for fields, columns in work.groups_of(self._wide[kind], place):
                    seen.add(fields)
                    if self.watch is not None and kind == "cuda_kernel":
                        self.watch(fields, columns)
                    self._write(table, rows_of(fields, columns))
                    yield len(fields)
        for kind, (table, make) in _OTHERS.items():
            if kind in self._wide:
                for rows in make(self._wide[kind], place):
                    self._write(table, rows)
                    yield rows.num_rows
        hardware = Hardware(self._wide, self._spool.definitions, place, seen=seen)
        self._write("devices", hardware.devices())
        self._write("contexts", hardware.contexts())
        self._write("streams", hardware.streams())

    def notes(self) -> list[Note]:
        """Notes about the recording of CUDA, and its unusable records."""
        if self._place is None:
            return []
        spool, place, pid = self._spool, self._place, self._spool.process.pid
        told = notices.notes(self._wide.get("cuda_notice"), spool.strings, pid)
        orderly, flush_ms = (
            spool.head.end_ns != 0,
            spool.bounds.capture.flush_ms if spool.bounds.capture else 0,
        )
        without = unanswered.find(place.calls, place.asked, place.spans, orderly=orderly, flush_ms=flush_ms)
        lost = losses.work(spool.head, spool.layouts)
        made = [self._wide[kind] for kind in ("cuda_context", "cuda_stream") if kind in self._wide]
        # Calls may be missing for other reasons: those of the last moments, or none were requested.
        is_whole = (
            orderly
            and not lost
            and not losses.calls(spool.head, spool.layouts)
            and spool.bounds.capture
            and spool.bounds.capture.calls
        )
        silent = unanswered.silent(place.calls, made, place.spans, others=told, pid=pid) if is_whole else []
        unflushed = (
            []
            if orderly or self._wide.keys() <= {"cuda_notice"}
            else unanswered.unflushed(without, told, pid, flush_ms=flush_ms)
        )
        wanted = self._wide.get("cuda_backtrace")
        backtraces = 0 if wanted is None else int((wanted.column("frames") == 0).sum())
        return [
            *told,
            *unanswered.notes(without, lost, told, pid=pid),
            *silent,
            *unflushed,
            *notices.odd(place.tally, self._kernels.lost, backtraces, pid=pid),
        ]
