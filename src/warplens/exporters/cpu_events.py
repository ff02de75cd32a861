"""Activity of threads on the CPU, for exporters.

States, the GIL, OS calls, files, collections, imports, Python, MPI and the like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.exporters.events import ExportEvents, Kind, Nesting, details, names
from warplens.exporters.rows import NONE, ExportRows
from warplens.exporters.tracks import Tracks, batches, values
from warplens.model.tables import TABLES
from warplens.timeline.kinds import CPU, kind_of

if TYPE_CHECKING:
    from warplens.report import Report

_BRIEF = "gil brief"  # brief holds are on a separate row
_CALLS = Kind("python_calls", "python", "name", details=("kind", "file", "line", "failed", "clipped"))
KINDS = (
    Kind("thread_states", "cpu_state", "state", details=("cpu", "exact", "reason")),
    _CALLS,
    Kind("imports", "import", "name", details=("self", "failed")),
    Kind("gc", "gc", "generation", details=("generation", "collected", "uncollectable"), fixed="GC"),
    Kind("gil", "gil", "state", details=("held", "waited", "holds", "waits", "interpreter")),
    Kind("osrt", "osrt", "name", details=("group", "result", "error", "fd", "target", "bytes", "object")),
    Kind(
        "mpi_events",
        "mpi",
        "name",
        details=("kind", "communicator", "rank", "peer", "root", "tag", "sent", "received", "bytes"),
    ),
    Kind("openmp_events", "openmp", "kind", details=("name",)),
    Kind("openacc_events", "openacc", "name", details=("kind",)),
    Kind("syscalls", "syscall", "name", details=("result",)),
    Kind(
        "file_access",
        "file_access",
        "name",
        details=("operation", "path", "fd", "bytes", "asked", "flags", "error"),
    ),
)
_NEEDED = ("id", "process", "thread", "start", "end")


class CpuTracks(ExportRows):
    """The rows that the CPU side needs, each below its thread."""

    @classmethod
    def of(cls, report: Report, tracks: Tracks) -> CpuTracks:
        """Return the rows of a report."""
        rows, counts = cls(report, tracks), report.tables
        drawn = {kind.table for kind in KINDS}
        for table in (table for table in CPU if table in drawn and counts[table]):
            name = kind_of(table).name
            parts = (
                {table: "state <> 'brief'", _BRIEF: "state = 'brief'"} if table == "gil" else {table: "true"}
            )
            for what, where in parts.items():
                for record in report.sql(
                    f"SELECT DISTINCT process, thread FROM {table} WHERE {where} ORDER BY ALL"
                ).to_pylist():
                    rows._of_thread(what, f"{name} (brief)" if what == _BRIEF else name, record)
        rows._sort()
        return rows


def cpu_events(report: Report, tracks: CpuTracks, *, most: int | None = None) -> Iterator[ExportEvents]:
    """Yield all events, at most `most` at once; of each row sorted by begin."""
    counts = report.tables
    for kind in KINDS:
        nesting = Nesting()
        own = {*_NEEDED, kind.name, *kind.details}
        wanted = [column.name for column in TABLES[kind.table].columns if column.name in own]
        for batch in batches(report, kind.table, wanted, most=most) if counts[kind.table] else ():
            for piece, what in _parted(kind, batch):
                yield _events(kind, what, piece, tracks=tracks, nesting=nesting)


def _parted(kind: Kind, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, str]]:
    """Yield groups of events for different rows or styles, with the name of the row.

    Of instants without their end.
    """
    if kind.table not in ("gil", "python_calls"):
        yield batch, kind.table
        return
    column, told = ("state", ["brief"]) if kind.table == "gil" else ("kind", ["exception", "warning"])
    apart = pc.is_in(pc.cast(batch.column(column), pa.string()), value_set=pa.array(told))
    own, others = batch.filter(pc.invert(apart)), batch.filter(apart)
    if own.num_rows:
        yield own, kind.table
    if others.num_rows:
        yield (others, _BRIEF) if kind.table == "gil" else (others.drop_columns(["end"]), kind.table)


def _events(
    kind: Kind, what: str, batch: pa.RecordBatch, tracks: CpuTracks, nesting: Nesting
) -> ExportEvents:
    none = np.full(batch.num_rows, -1, np.int64)
    ids, start = values(batch, "id"), values(batch, "start")
    end = values(batch, "end") if "end" in batch.schema.names else None
    row = tracks.find(what, values(batch, "process"), values(batch, "thread", NONE), none)
    parent = none if end is None else nesting.parents(ids, row, start=start, end=end)
    return ExportEvents(
        kind,
        row,
        ids,
        parent=parent,
        start=start,
        end=end,
        name=names(kind, batch),
        details=details(kind, batch),
        arrow=none,
    )
