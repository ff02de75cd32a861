"""Streams a table of a report by row groups, with only the needed columns and rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import warplens.report.arrow_compute as pc
from warplens.model.tables import TABLES
from warplens.report.cutting import Calls, Window, chosen, keys, overlaps
from warplens.report.store import TableFile, unreadable
from warplens.storage import schema

if TYPE_CHECKING:
    from warplens.report.asked import AskedReport


@dataclass(frozen=True)
class RowGroup:
    """One row group of one file.

    `shift` brings its clock columns onto the report's clock, then rows are chosen by `cut` and
    `calls`.
    """

    file: Path
    metadata: pq.FileMetaData
    number: int
    shift: int
    cut: Window | None = None
    calls: Calls | None = None

    def may_be_true(self, column: str) -> bool:
        """Whether the file's statistics leave open that a bool column is true in some row."""
        edges = self.edges(column)
        return edges is None or bool(edges[1])

    def may_overlap(self, window: Window | None) -> bool:
        """Whether the file's statistics leave open that a range overlaps the window."""
        if window is None:
            return True
        start, end = self.edges("start"), self.edges("end")
        return not (
            (start is not None and start[0] + self.shift >= window[1])
            or (
                end is not None
                and start is not None
                and end[1] + self.shift <= window[0]
                and start[1] + self.shift < window[0]
            )
        )

    def may_be_chosen(self) -> bool:
        """Whether the file's statistics leave open that a row counts."""
        if self.calls is None:
            return self.may_overlap(self.cut)
        ids = self.edges("api")
        return (self._has_nulls("api") and self.may_overlap(self.cut)) or any(
            ids is None or (ids[0] < behind and ids[1] >= first) for first, behind in self.calls
        )

    def may_cross(self, window: Window) -> bool:
        """Whether the file's statistics leave open that a row is not wholly inside the window."""
        start, end = self.edges("start"), self.edges("end") or self.edges("start")
        return (
            start is None
            or end is None
            or start[0] + self.shift < window[0]
            or max(end[1], start[1] + 1) + self.shift > window[1]
        )

    def _has_nulls(self, column: str) -> bool:
        statistics = self._statistics(column)
        return statistics is None or not statistics.has_null_count or statistics.null_count > 0

    def edges(self, column: str) -> tuple[int, int] | None:
        """The least and the greatest value of a column, where the file says so: before they are shifted."""
        statistics = self._statistics(column)
        return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None

    def _statistics(self, column: str) -> pq.Statistics | None:
        group = self.metadata.row_group(self.number)
        for index in range(group.num_columns):
            part = group.column(index)
            if part.path_in_schema == column:
                return part.statistics
        return None


def groups_of(piece: TableFile) -> Iterator[RowGroup]:
    """Yield the row groups of one file of a table."""
    metadata = pq.read_metadata(piece.file)
    for number in range(metadata.num_row_groups):
        yield RowGroup(piece.file, metadata, number, shift=piece.shift, cut=piece.cut, calls=piece.calls)


def threads() -> int:
    """The number of threads to work with."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, 8)


def row_groups(report: AskedReport, table: str, window: Window | None = None) -> list[RowGroup]:
    """List the row groups of a table, in the order of the report, that may hold rows of the window."""
    groups = []
    for piece in report.pieces(table):
        groups += [group for group in groups_of(piece) if group.may_overlap(window) and group.may_be_chosen()]
    return groups


class RowGroupReader:
    """Reads row groups of a table; each thread keeps its own open file.

    Strings come as dictionaries.
    """

    def __init__(self, table: str, window: Window | None = None) -> None:
        self._texts = [column.name for column in TABLES[table].columns if column.type == "dict"]
        self._clocks = {column.name for column in TABLES[table].columns if column.clock}
        self._schema = schema.schema(table)
        self._keys = keys(TABLES[table])
        self._window = window
        self._local = threading.local()

    def read(self, group: RowGroup, columns: Sequence[str]) -> pa.Table:
        """Return the columns of one row group on the report's clock, without rows outside the window."""
        if group.cut is not None and (group.calls is not None or group.may_cross(group.cut)):
            whole = [*columns, *(name for name in self._keys if name not in columns)]
            rows = chosen(self._read(group, whole), group.cut, group.calls).select(list(columns))
        else:
            rows = self._read(group, columns)
        return rows if self._window is None else rows.filter(overlaps(rows, self._window))

    def _read(self, group: RowGroup, columns: Sequence[str]) -> pa.Table:
        files: dict[Path, pq.ParquetFile] = self._local.__dict__.setdefault("files", {})
        try:
            if group.file not in files:
                there = set(group.metadata.schema.names)  # an older file may lack a column
                texts = [name for name in self._texts if name in there]
                files[group.file] = pq.ParquetFile(
                    group.file, metadata=group.metadata, read_dictionary=texts, memory_map=True
                )
            rows = files[group.file].read_row_group(group.number, columns=list(columns), use_threads=False)
            if rows.num_columns < len(set(columns)):
                rows = schema.complete(rows, pa.schema([self._schema.field(name) for name in columns]))
        except (pa.ArrowException, OSError) as error:
            raise unreadable(group.file, error) from error
        if group.shift:
            for name in self._clocks.intersection(columns):
                index = rows.schema.get_field_index(name)
                rows = rows.set_column(
                    index,
                    rows.schema.field(index),
                    pc.add(rows.column(index), pa.scalar(group.shift, pa.int64())),
                )
        return rows


def each(groups: Sequence[RowGroup], function: Callable[[RowGroup], None]) -> None:
    """Call `function` with every row group, in several threads, in no order."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(threads(), len(groups)) or 1) as pool:
        for _ in pool.map(function, groups):
            pass


def stream(
    report: AskedReport, table: str, columns: Sequence[str], window: Window | None = None
) -> Iterator[pa.Table]:
    """Yield the row groups of a table in order, the next one read ahead in a thread."""
    from concurrent.futures import ThreadPoolExecutor

    groups = row_groups(report, table, window)
    reader = RowGroupReader(table, window)
    with ThreadPoolExecutor(1) as pool:
        ahead = [pool.submit(reader.read, group, columns) for group in groups[:1]]
        for index in range(len(groups)):
            rows = ahead.pop().result()
            if index + 1 < len(groups):
                ahead.append(pool.submit(reader.read, groups[index + 1], columns))
            yield rows
