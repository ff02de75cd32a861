"""NVTX ranges on the GPU: which operations were launched in which ranges, and from when to when those ran.

A range contains an operation when the call that launched it began in the range, on the range's thread. Ranges that cross threads
contain nothing. The ranges are streamed; what is kept are those that contain something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.extremes import Extremes
from warplens.arrays import Int64Array
from warplens.report.columns import integers
from warplens.report.row_groups import RowGroup, RowGroupReader, row_groups, threads
from warplens.report.selection import Selection
from warplens.storage import schema

if TYPE_CHECKING:
    from warplens.report.report import Report

_NEEDED = ("thread", "end_thread", "start", "end")
TABLES = ("kernels", "memcpys", "memsets", "graphs")


@dataclass(frozen=True)
class ProcessGroups:
    """A process, and of each table the row groups that may have rows of it."""

    process: int
    groups: Mapping[str, list[RowGroup]]


@dataclass(frozen=True)
class LaunchedOperations:
    """Operations in order of thread and begin of their call.

    `rows`: the other columns that were requested.
    """

    thread: Int64Array
    called: Int64Array
    start: Int64Array
    end: Int64Array
    rows: pa.Table

    @classmethod
    def of(
        cls,
        report: Report,
        tables: Sequence[str] = TABLES,
        columns: Sequence[str] = (),
        part: ProcessGroups | None = None,
    ) -> LaunchedOperations:
        """Read the operations whose call was recorded, of all processes or of one.

        What `columns` names, all `tables` have.
        """
        wanted_columns = ["api", "start", "end", *columns]
        parts = [_rows(report, name, wanted_columns, part=part) for name in tables if report.tables[name]]
        rows = pa.concat_tables(parts) if parts else report.table(tables[0], wanted_columns)
        calls = _rows(report, "cuda_api", ["id", "thread", "start"], part=part)
        ids = integers(calls, "id")
        order = np.argsort(ids, kind="stable")  # sorted within a part already: next to nothing to do
        wanted = np.asarray(pc.fill_null(rows.column("api"), -1).to_numpy(), np.int64)
        # A lookup by sorted ids; ids that are absent land on some row and drop out in the comparison below.
        place = (
            order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
            if len(ids)
            else np.empty(0, np.int64)
        )
        known = np.flatnonzero(ids[place] == wanted) if len(ids) else np.empty(0, np.int64)
        place = place[known]
        thread, called = integers(calls, "thread")[place], integers(calls, "start")[place]
        sequence = np.lexsort((called, thread))
        kept = known[sequence]
        start, end = integers(rows, "start")[kept], integers(rows, "end")[kept]
        return cls(
            thread[sequence], called[sequence], start, end, rows.select(list(columns)).take(pa.array(kept))
        )


class Containment:
    """Finds the launches in ranges: positions in `launches`, which are next to one another."""

    def __init__(self, launches: LaunchedOperations) -> None:
        edges = np.flatnonzero(np.diff(launches.thread, prepend=launches.thread[:1] - 1))
        self._threads = launches.thread[edges]
        self._times = np.sort(launches.called)
        # One number in which threads and times sort alike: times by their rank, which is never too large.
        self._width = len(self._times) + 1
        self._keys = self._key(np.searchsorted(self._threads, launches.thread), launches.called)

    def find(self, thread: Int64Array, start: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the first position and the one behind the last.

        Ranges without launches have none between.
        """
        place = np.minimum(np.searchsorted(self._threads, thread), max(len(self._threads) - 1, 0))
        known = self._threads[place] == thread if len(self._threads) else np.zeros(len(thread), bool)
        # Launches are sorted by (thread, time), and so are the keys: those in a range are a run [first, last).
        first = np.searchsorted(self._keys, self._key(place, start))
        last = np.searchsorted(self._keys, self._key(place, end))
        return first, np.where(known, np.maximum(last, first), first)

    def _key(self, thread: Int64Array, time: Int64Array) -> Int64Array:
        return thread * self._width + np.searchsorted(self._times, time)


def containing(
    report: Report,
    selection: Selection,
    launches: LaunchedOperations,
    columns: Sequence[str],
    part: ProcessGroups | None = None,
) -> tuple[pa.Table, Int64Array, Int64Array]:
    """Return the selected ranges that contain launches, and the positions of those launches.

    First, and behind the last.

    `part`: the process that the launches are of, where they are of one.
    """
    inside = Containment(launches)
    wanted = [*columns, *(name for name in _NEEDED if name not in columns)]
    window = selection.window(report)
    reader = RowGroupReader("nvtx_ranges", window)

    def read_group(group: RowGroup) -> tuple[pa.Table, Int64Array, Int64Array]:
        rows = reader.read(group, wanted)
        thread = integers(rows, "thread")
        first, last = inside.find(thread, integers(rows, "start"), integers(rows, "end"))
        ended = np.asarray(pc.fill_null(rows.column("end_thread"), -1).to_numpy(), np.int64)
        kept = np.flatnonzero((last > first) & ((ended < 0) | (ended == thread)))
        return rows.select(list(columns)).take(pa.array(kept)), first[kept], last[kept]

    every = row_groups(report, "nvtx_ranges", window) if part is None else part.groups["nvtx_ranges"]
    groups = every if len(launches.thread) else []
    if not groups:
        return report.table("nvtx_ranges", columns).slice(0, 0), np.empty(0, np.int64), np.empty(0, np.int64)
    with ThreadPoolExecutor(min(threads(), len(groups))) as pool:
        tables, begins, ends = zip(*pool.map(read_group, groups), strict=True)
    return (
        pa.concat_tables(tables).unify_dictionaries().combine_chunks(),
        np.concatenate(begins),
        np.concatenate(ends),
    )


def projected(report: Report, selection: Selection, columns: Sequence[str]) -> pa.Table:
    """Return the ranges that contain operations.

    `columns` of `nvtx_ranges`, then `first`, `last` and `operations`.

    `first`: when the first operation began, `last`: when the last one ended (ns); `operations`: how many there are. In order of `first`.
    """
    launches = LaunchedOperations.of(report)
    rows, begin, end = containing(report, selection, launches, columns=columns)
    first = Extremes.among(launches.start, greatest=False).of(begin, end)
    last = Extremes.among(launches.end, greatest=True).of(begin, end)
    for name, values in (("first", first), ("last", last), ("operations", end - begin)):
        rows = rows.append_column(name, pa.array(values))
    order = np.lexsort((*(integers(rows, name) for name in ("id", "start") if name in columns), first))
    return rows.take(pa.array(order))


def on_streams(
    report: Report, columns: Sequence[str]
) -> Iterator[tuple[tuple[int, int, int, int], pa.Table]]:
    """Yield for each process, device, context and stream the ranges that contain operations on it.

    One process is in memory at a time.

    The tables have `columns` of `nvtx_ranges`, then `first` and `last`: when the first of those operations began and the last one ended
    (ns). In order of `first`, the longer ones first.
    """
    for part in _processes(report):
        for stream, rows in _on_streams(report, part, columns):
            yield (part.process, *stream), rows


def _on_streams(
    report: Report, part: ProcessGroups, columns: Sequence[str]
) -> Iterator[tuple[tuple[int, int, int], pa.Table]]:
    keys = ("device", "context", "stream")
    launches = LaunchedOperations.of(report, columns=keys, part=part)
    if not len(launches.thread):
        return
    rows, begin, end = containing(report, Selection(), launches, columns=columns, part=part)
    of = np.zeros(len(launches.thread), np.int64)
    for key in keys:
        values, code = np.unique(integers(launches.rows, key), return_inverse=True)
        # Combines the keys one by one into a dense number; renumbering each time keeps the product small.
        of = np.unique(of * len(values) + code, return_inverse=True)[1]
    order = np.argsort(of, kind="stable")
    edges = np.flatnonzero(np.diff(of[order], prepend=-1))
    for own in np.split(order, edges[1:]):
        stream = launches.rows.slice(int(own[0]), 1).to_pylist()[0]
        # `own` has the positions of this stream's launches in order, so the run [begin, end) of all launches is [first, behind) there.
        first, behind = np.searchsorted(own, begin), np.searchsorted(own, end)
        kept = np.flatnonzero(behind > first)
        first, behind = first[kept], behind[kept]
        starts = Extremes.among(launches.start[own], greatest=False).of(first, behind)
        ends = Extremes.among(launches.end[own], greatest=True).of(first, behind)
        table = (
            rows.take(pa.array(kept))
            .append_column("first", pa.array(starts))
            .append_column("last", pa.array(ends))
        )
        yield (
            (stream["device"], stream["context"], stream["stream"]),
            table.take(pa.array(np.lexsort((-ends, starts)))),
        )


def _processes(report: Report) -> Iterator[ProcessGroups]:
    """Yield the processes that have ranges and launches."""
    groups_of_table: dict[str, list[tuple[int, int, RowGroup]]] = {}
    for table in ("nvtx_ranges", "cuda_api", *TABLES):
        every = row_groups(report, table) if report.tables[table] else []
        groups_of_table[table] = [(*(group.edges("process") or (-1, 1 << 62)), group) for group in every]
    for process in report.table("processes", ["process"]).column(0).to_pylist():
        own = {
            table: [group for low, high, group in groups if low <= process <= high]
            for table, groups in groups_of_table.items()
        }
        if own["nvtx_ranges"] and own["cuda_api"] and any(own[table] for table in TABLES):
            yield ProcessGroups(process, own)


def _rows(report: Report, table: str, columns: Sequence[str], part: ProcessGroups | None) -> pa.Table:
    if part is None:
        return report.table(table, columns)
    reader = RowGroupReader(table)
    parts = [schema.schema(table).empty_table().select(list(columns))]
    for group in part.groups[table]:
        rows = reader.read(group, [*columns, "process"])
        parts.append(rows.filter(pc.equal(rows.column("process"), part.process)).select(list(columns)))
    return pa.concat_tables(parts)
