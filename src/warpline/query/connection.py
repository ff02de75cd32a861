"""The one place where DuckDB connections are made: in memory, the report's tables as views, everything else locked."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb

from warpline.errors import ReportError
from warpline.model.tables import TABLES, Column, Table
from warpline.report.store import Piece, Stored

_MEMORY_SHARE = 0.5
_MEMORY_MOST = 8 << 30


def connect(store: Stored, *, threads: int | None = None, memory: int | None = None) -> duckdb.DuckDBPyConnection:
    """Open a connection that sees the tables of one report and nothing else.

    It can read files only below the report's `tables`, loads no extension, and its settings are locked.
    `threads`: at most so many (default: one per CPU). `memory`: bytes (default: half the machine's, at most 8 GiB).
    """
    tables = store.path.resolve() / "tables"
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "threads": str(threads or os.cpu_count() or 1),
            "memory_limit": f"{(memory or _memory()) >> 20}MiB",
            "temp_directory": str(Path(tempfile.gettempdir()) / f"warpline-query-{os.getpid()}"),
            "preserve_insertion_order": "true",
        },
    )
    connection.execute(f"SET allowed_directories=[{_quote(str(tables) + os.sep)}]")
    connection.execute("SET enable_external_access=false")
    for table in TABLES.values():
        try:
            connection.execute(f"CREATE VIEW {table.name} AS {_relation(table, store.pieces(table.name))}")
        except duckdb.Error as error:
            connection.close()
            raise ReportError(f"cannot read the table {table.name} of {store.path}: {str(error).splitlines()[0]}") from error
    connection.execute("SET lock_configuration=true")
    return connection


def _relation(table: Table, pieces: list[Piece]) -> str:
    """Return the SELECT over a table's files; those of other hosts are shifted onto the first one's clock."""
    if not pieces:
        columns = ", ".join(_column(column, 0, True) for column in table.columns)
        return f"SELECT {columns} WHERE false"
    groups: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for piece in pieces:
        groups.setdefault((piece.shift, piece.missing), []).append(_quote(str(piece.file.resolve())))
    selects = []
    for (shift, missing), files in groups.items():
        columns = ", ".join(_column(column, 0 if not column.clock else shift, column.name in missing) for column in table.columns)
        selects.append(f"SELECT {columns} FROM read_parquet([{', '.join(files)}])")
    return " UNION ALL ".join(selects)


def _column(column: Column, shift: int, missing: bool) -> str:
    name = _name(column.name)
    if missing:
        return f"NULL::{_SQL_TYPES[column.type]} AS {name}"
    return f"{name} + {shift} AS {name}" if shift else name


_SQL_TYPES = {
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "binary": "BLOB",
    "dict": "VARCHAR",
}


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _memory() -> int:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _MEMORY_MOST
    return min(int(total * _MEMORY_SHARE), _MEMORY_MOST)
