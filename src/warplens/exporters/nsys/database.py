"""Writes the SQLite file: tables as they are first filled, each text once in `StringIds`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_sqlite.dbapi as sqlite
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.disk.files import remove
from warplens.exporters.nsys.layout import columns, definition


class Writer:
    """An open file; no other may look at it while it is written. Raises OSError."""

    def __init__(self, path: Path) -> None:
        remove(path)
        try:
            # Nobody else knows the file: no locks (some file systems have none), no journal, no waiting for the disk.
            self._connection = sqlite.connect(
                f"file:{quote(os.fsencode(path.absolute()))}?nolock=1", autocommit=True
            )
            self._cursor = self._connection.cursor()
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
                self._cursor.execute(f"PRAGMA {pragma}")
            self._cursor.execute("BEGIN")
        except adbc_driver_manager.Error as error:
            raise OSError(0, _said(error)) from error
        self._made: set[str] = set()
        self._strings: dict[str, int] = {}
        self.rows: dict[str, int] = {}

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.write("StringIds", {"id": list(self._strings.values()), "value": list(self._strings)})
                self.make("StringIds")
                self._cursor.execute("COMMIT")
        except adbc_driver_manager.Error as failed:
            raise OSError(0, _said(failed)) from failed
        finally:
            self._cursor.close()
            self._connection.close()

    def make(self, table: str, sql: str | None = None) -> None:
        """Make a table of the layout, or another one with its own SQL."""
        if table not in self._made:
            self._made.add(table)
            self._cursor.execute(sql or definition(table))

    def write(self, table: str, values: Mapping[str, Any], sql: str | None = None) -> None:
        """Append columns to a table; those that are not given are null. Raises OSError."""
        arrays = {name: _plain(column) for name, column in values.items()}
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
        if not batch.num_rows:
            return
        if sql is None and (unknown := set(arrays) - set(columns(table))):
            raise KeyError(f"{table} has no column {sorted(unknown)}")
        try:
            self.make(table, sql)
            self._cursor.adbc_ingest(table, batch, mode="append")
        except adbc_driver_manager.Error as error:
            raise OSError(0, _said(error)) from error
        self.rows[table] = self.rows.get(table, 0) + batch.num_rows

    def rows_of(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows of a small table."""
        if rows:
            self.write(table, {name: [row.get(name) for row in rows] for name in rows[0]})

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def strings(self, texts: pa.Array) -> pa.Array:
        """Return the numbers of a column of texts, null if there is none."""
        coded = texts if pa.types.is_dictionary(texts.type) else pc.dictionary_encode(texts)
        numbers = pa.array(
            [None if text is None else self.string(text) for text in coded.dictionary.to_pylist()], pa.int64()
        )
        return pc.take(numbers, coded.indices)


def _plain(column: Any) -> pa.Array:
    """Return a column in a type that SQLite has; numbers above 2^63-1 wrap, as in nsys' files."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values = column if isinstance(column, pa.Array) else pa.array(column)
    if pa.types.is_uint64(values.type):
        return values.view(pa.int64())
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_integer(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.int64())
    return (
        values.cast(pa.float64())
        if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)
        else values
    )


def places(keys: np.ndarray[Any, np.dtype[np.int64]], wanted: pa.Array) -> pa.Array:
    """Return the numbers (from 1) of keys in a sorted array; 0 if a key is null or not there."""
    valid = np.asarray(wanted.is_valid())
    numbers = pc.fill_null(wanted, -1).to_numpy(zero_copy_only=False)
    if not len(keys):
        return pa.array(np.zeros(len(numbers), np.int64))
    at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return pa.array(np.where(valid & (keys[at] == numbers), at + 1, 0))


def _said(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
