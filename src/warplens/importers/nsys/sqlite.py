"""Reads tables of a SQLite file of any schema, as the requested types."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_sqlite.dbapi as sqlite
import pyarrow as pa

from warplens.errors import NotAReport, ReportError
from warplens.importers.nsys.conditions import Where
from warplens.importers.nsys.database import LATEST, Database
from warplens.importers.nsys.rows import FLAG, NsysRows
from warplens.report.quoting import quoted, quoted_name

MAGIC = b"SQLite format 3\0"
_HEAD = 100  # bytes
_BATCH_ROWS = 1 << 16
_SLICE_ROWS = 1 << 20
_ERRORS = (adbc_driver_manager.Error, OSError, pa.ArrowException)


class SqliteFile(Database):
    """An open SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values: dict[str, tuple[int, dict[str, int]]] = {}
        try:
            with open(path, "rb") as file:
                head = file.read(_HEAD)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
        if not head.startswith(MAGIC):
            raise NotAReport(f"{path} is not a SQLite file.")
        if size < (whole := _whole_size(head)):
            raise ReportError(
                f"{path} is truncated: it has {size} of {whole} bytes. Copy it again, or export it again."
            )
        wal = path.with_name(path.name + "-wal")
        # A file that nobody writes any more is read without locks and without files beside it, from read-only places too.
        alone = "" if wal.exists() and wal.stat().st_size else "&immutable=1"
        try:
            self._connection = sqlite.connect(f"file:{quote(str(path.absolute()))}?mode=ro{alone}")
        except _ERRORS as error:
            raise self._broken(error) from error
        try:
            self.tables = self._schema()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return self._filled(table)[0] if self.has(table) else 0

    def read(
        self,
        table: str,
        ints: Sequence[str] = (),
        reals: Sequence[str] = (),
        texts: Sequence[str] = (),
        where: Where = (),
    ) -> NsysRows:
        """Return columns of rows; see `Database`."""
        names = [*ints, *reals, *texts]
        if table not in self.tables:
            return NsysRows(pa.table({FLAG: pa.array([], pa.int64())}), names, texts)
        condition = f" WHERE {' AND '.join(part.sql() for part in where)}" if where else ""
        return NsysRows(
            self._query(
                f"SELECT {self._select(table, ints, reals, texts=texts)} FROM {quoted_name(table)}{condition}",
                table,
            ),
            names,
            texts,
        )

    def grouped(
        self, table: str, key: str, start: str, end: str, where: Where = ()
    ) -> list[tuple[int, int, int]]:
        """Return when each value of a column was first and last seen; see `Database`."""
        if not self.has(table, start):
            return []
        keys = f"coalesce(CAST({quoted_name(key)} AS INTEGER), 0)" if self.has(table, key) else "0"
        begin = f"CAST({quoted_name(start)} AS INTEGER)"
        last = f"coalesce(CAST({quoted_name(end)} AS INTEGER), {begin})" if self.has(table, end) else begin
        good = [
            f"{quoted_name(start)} IS NOT NULL",
            *(f"{time} BETWEEN -{LATEST} AND {LATEST}" for time in (begin, last)),
            *(part.sql() for part in where),
        ]
        rows = self._query(
            f"SELECT {keys} AS k, min({begin}) AS b, max(max({last}, {begin})) AS e "
            f"FROM {quoted_name(table)} WHERE {' AND '.join(good)} GROUP BY 1",
            table,
        )
        return [(row["k"], row["b"], row["e"]) for row in rows.to_pylist()]

    def sorted_batches(
        self, table: str, ints: Sequence[str], reals: Sequence[str], order: str
    ) -> Iterator[NsysRows]:
        """Yield columns sorted by one of them, piece by piece; see `Database`."""
        if not self.has(table, *ints, *reals):
            return
        text = f"SELECT {self._select(table, ints, reals, texts=())} FROM {quoted_name(table)} ORDER BY {quoted_name(order)}"
        try:
            with self._cursor() as cursor:
                cursor.execute(text)
                waiting: list[pa.RecordBatch] = []
                for batch in cursor.fetch_record_batch():
                    waiting.append(batch)
                    if sum(one.num_rows for one in waiting) >= _SLICE_ROWS:
                        yield NsysRows(pa.Table.from_batches(waiting), [*ints, *reals], ())
                        waiting = []
                if waiting:
                    yield NsysRows(pa.Table.from_batches(waiting), [*ints, *reals], ())
        except _ERRORS as error:
            raise self._broken(error, table) from error

    def distinct(self, table: str, columns: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the different values of some columns; see `Database`."""
        if not self.has(table):
            return []
        there = self.tables[table]
        select = ", ".join(
            f"{f'coalesce(CAST({quoted_name(name)} AS INTEGER), 0)' if name in there else 0} AS {quoted_name(name)}"
            for name in columns
        )
        rows = self._query(f"SELECT DISTINCT {select} FROM {quoted_name(table)}", table)
        return list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))

    def _select(self, table: str, ints: Sequence[str], reals: Sequence[str], texts: Sequence[str]) -> str:
        """Return the columns of a SELECT that have a value anywhere.

        Beside reals and texts with nulls where they have one.
        """
        rows, values = self._filled(table)
        select = [
            f"CAST({quoted_name(name)} AS INTEGER) AS {quoted_name(name)}"
            for name in ints
            if values.get(name)
        ]
        # The driver takes a column's type from its first rows: none may be null where the type is not that of integers.
        for names, kind, nothing in ((reals, "REAL", "0.0"), (texts, "BLOB", "x''")):
            for name in names:
                if values.get(name):
                    select.append(
                        f"coalesce(CAST({quoted_name(name)} AS {kind}), {nothing}) AS {quoted_name(name)}"
                    )
                if 0 < values.get(name, 0) < rows:
                    select.append(f"{quoted_name(name)} IS NOT NULL AS {quoted_name(name + FLAG)}")
        return ", ".join(select) or f"1 AS {quoted_name(FLAG)}"

    def _filled(self, table: str) -> tuple[int, dict[str, int]]:
        """Return how many rows a table has, and how many of them have a value in each column."""
        if table not in self._values:
            columns = sorted(self.tables[table])
            counts = "".join(f", count({quoted_name(column)})" for column in columns)
            rows, *values = (
                column[0].as_py()
                for column in self._query(f"SELECT count(*){counts} FROM {quoted_name(table)}", table).columns
            )
            self._values[table] = rows, dict(zip(columns, values, strict=True))
        return self._values[table]

    def _schema(self) -> dict[str, frozenset[str]]:
        # Only plain tables: a view or a virtual table of a stranger's file could run anything.
        listed = self._query(
            "SELECT CAST(name AS BLOB) AS name FROM sqlite_master WHERE type = 'table' AND upper(ltrim(sql)) NOT LIKE 'CREATE VIRTUAL%'",
            "",
        )
        names = [bytes(name).decode(errors="replace") for name in listed.column("name").to_pylist()]
        return {name: frozenset(self._columns(name)) for name in names if not name.startswith("sqlite_")}

    def _columns(self, table: str) -> list[str]:
        rows = self._query(
            f"SELECT CAST(name AS BLOB) AS name FROM pragma_table_info({quoted(table)})", table
        )
        return [bytes(name).decode(errors="replace") for name in rows.column("name").to_pylist()]

    def _query(self, text: str, table: str) -> pa.Table:
        try:
            with self._cursor() as cursor:
                cursor.execute(text)
                return cursor.fetch_arrow_table()
        except _ERRORS as error:
            raise self._broken(error, table) from error

    def _cursor(self) -> Any:
        cursor = self._connection.cursor()
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)})
        return cursor

    def _broken(self, error: BaseException, table: str = "") -> ReportError:
        words = (
            str(error)
            .splitlines()[0]
            .removeprefix("INTERNAL: ")
            .removeprefix("IO: ")
            .removeprefix("INVALID_ARGUMENT: ")
        )
        where = f"the table {table} of {self.path}" if table else str(self.path)
        return ReportError(
            f"cannot read {where}: {words}. Is the file complete? Export it again: `nsys export -t sqlite`."
        )


def _whole_size(head: bytes) -> int:
    """Return how long a file with this head should be (bytes); 0 where it does not say."""
    if len(head) < _HEAD:
        return _HEAD
    page, changes, pages, counted_at = (
        *struct.unpack_from(">H", head, 16),
        *struct.unpack_from(">II", head, 24),
        *struct.unpack_from(">I", head, 92),
    )
    return pages * (65536 if page == 1 else page) if changes == counted_at else 0
