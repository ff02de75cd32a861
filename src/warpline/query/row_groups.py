"""Streams a table of a report by row groups: only the columns and the rows that a question needs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warpline.errors import ReportError
from warpline.model.tables import TABLES
from warpline.report import schema

if TYPE_CHECKING:
    from warpline.query.report import Report

Window = tuple[int, int]


@dataclass(frozen=True)
class RowGroup:
    """One row group of one file; `shift` brings its clock columns onto the report's clock."""

    file: Path
    metadata: pq.FileMetaData
    number: int
    shift: int

    def may_be_true(self, column: str) -> bool:
        """Whether the file's statistics leave open that a bool column is true in some row."""
        edges = self._edges(column)
        return edges is None or bool(edges[1])

    def may_overlap(self, window: Window | None) -> bool:
        """Whether the file's statistics leave open that a range overlaps the window."""
        if window is None:
            return True
        start, end = self._edges("start"), self._edges("end")
        return not (
            (start is not None and start[0] + self.shift >= window[1])
            or (end is not None and start is not None and end[1] + self.shift <= window[0] and start[1] + self.shift < window[0])
        )

    def _edges(self, column: str) -> tuple[int, int] | None:
        group = self.metadata.row_group(self.number)
        for index in range(group.num_columns):
            part = group.column(index)
            if part.path_in_schema == column:
                found = part.statistics
                return (found.min, found.max) if found is not None and found.has_min_max else None
        return None


def threads() -> int:
    """How many threads to work with."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, 8)


def row_groups(report: Report, table: str, window: Window | None = None) -> list[RowGroup]:
    """List the row groups of a table, in the order of the report, that may hold rows of the window."""
    found = []
    for piece in report.pieces(table):
        metadata = pq.read_metadata(piece.file)
        groups = (RowGroup(piece.file, metadata, number, piece.shift) for number in range(metadata.num_row_groups))
        found += [group for group in groups if group.may_overlap(window)]
    return found


class Reader:
    """Reads row groups of a table; each thread keeps its own open file. Strings come as dictionaries."""

    def __init__(self, table: str, window: Window | None = None) -> None:
        self._texts = [column.name for column in TABLES[table].columns if column.type == "dict"]
        self._clocks = {column.name for column in TABLES[table].columns if column.clock}
        self._schema = schema.schema(table)
        self._window = window
        self._local = threading.local()

    def read(self, group: RowGroup, columns: Sequence[str]) -> pa.Table:
        """Return the columns of one row group: on the report's clock, rows outside the window left out (needs start and end)."""
        files: dict[Path, pq.ParquetFile] = self._local.__dict__.setdefault("files", {})
        try:
            if group.file not in files:
                files[group.file] = pq.ParquetFile(group.file, metadata=group.metadata, read_dictionary=self._texts, memory_map=True)
            rows = files[group.file].read_row_group(group.number, columns=list(columns), use_threads=False)
            if rows.num_columns < len(set(columns)):
                rows = schema.complete(rows, pa.schema([self._schema.field(name) for name in columns]))
        except (pa.ArrowException, OSError) as error:
            raise ReportError(f"cannot read {group.file}: {error}") from error
        if group.shift:
            for name in self._clocks.intersection(columns):
                index = rows.schema.get_field_index(name)
                rows = rows.set_column(index, rows.schema.field(index), pc.add(rows.column(index), pa.scalar(group.shift, pa.int64())))
        return rows if self._window is None else rows.filter(overlaps(rows, self._window))


def overlaps(rows: pa.Table, window: Window) -> pa.ChunkedArray:
    """Say of each row with `start` and `end` whether it overlaps the window: as `selection.overlap` does in SQL."""
    begin, end = (pa.scalar(edge, pa.int64()) for edge in window)
    start, last = rows.column("start"), rows.column("end") if "end" in rows.column_names else rows.column("start")
    return pc.and_(pc.less(start, end), pc.or_(pc.greater(last, begin), pc.greater_equal(start, begin)))


def each(groups: Sequence[RowGroup], function: Callable[[RowGroup], None]) -> None:
    """Call `function` with every row group, in several threads, in no order."""
    with ThreadPoolExecutor(min(threads(), len(groups)) or 1) as pool:
        for _ in pool.map(function, groups):
            pass


def stream(report: Report, table: str, columns: Sequence[str], window: Window | None = None) -> Iterator[pa.Table]:
    """Yield the row groups of a table in order, the next one read ahead in a thread."""
    groups = row_groups(report, table, window)
    reader = Reader(table, window)
    with ThreadPoolExecutor(1) as pool:
        ahead = [pool.submit(reader.read, group, columns) for group in groups[:1]]
        for index in range(len(groups)):
            rows = ahead.pop().result()
            if index + 1 < len(groups):
                ahead.append(pool.submit(reader.read, groups[index + 1], columns))
            yield rows
