"""Makes all DuckDB connections: in memory, the report's tables as views, everything else locked."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable

import duckdb

from warplens.errors import ReportError
from warplens.model.tables import TABLES, Column, Table
from warplens.report.cutting import Calls, Window, payload_condition, share
from warplens.report.quoting import quoted, quoted_name
from warplens.report.selection import overlap
from warplens.report.store import Stored, TableFile
from warplens.storage.available import available

_WORD = re.compile(r"\w+")
_LISTING = frozenset({"show", "describe", "summarize", "pragma", "information_schema", "query_table"})
_CATALOGS = ("duckdb_", "pg_", "sqlite_")
_MEMORY_SHARE = 0.5  # of what is free: as much goes to what SQL takes beside what it counts, and to us
_MEMORY_MOST = 8 << 30
_MEMORY_LEAST = 32 << 20


def connect(
    store: Stored, *, threads: int | None = None, memory: int | None = None, spill: str = ""
) -> duckdb.DuckDBPyConnection:
    """Open a connection that can see the tables of one report (`show` them) and nothing else.

    It can read files only below the report's `tables`, loads no extension, and its settings are locked.
    `threads`: maximum number of threads (default: one per CPU). `memory`: bytes (default: `memory_limit()`).
    `spill`: the folder for what does not fit; without one, there are no temporary files.
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
            "memory_limit": f"{(memory or memory_limit()) >> 20}MiB",
            "temp_directory": spill,
            "preserve_insertion_order": "true",
        },
    )
    connection.execute(f"SET allowed_directories=[{quoted(str(tables) + os.sep)}]")
    connection.execute("SET enable_external_access=false")
    connection.execute("SET lock_configuration=true")
    return connection


def named_in(text: str, store: Stored) -> set[str]:
    """Return the tables that SQL may query: those with their names in it, or all if it lists tables.

    Each takes a millisecond or two to show, which is most of what a short question costs.
    """
    words = set(_WORD.findall(text.lower()))
    named = words & TABLES.keys()
    lists = not named or not words.isdisjoint(_LISTING) or any(word.startswith(_CATALOGS) for word in words)
    return set(TABLES) if lists or ("payloads" in named and store.cuts is not None) else named


def show(connection: duckdb.DuckDBPyConnection, store: Stored, names: Iterable[str]) -> None:
    """Make views of these tables. ReportError if a file cannot be read."""
    for table in sorted(
        (TABLES[name] for name in names), key=lambda table: table.name == "payloads"
    ):  # the last one: it may look at others
        try:
            connection.execute(f"CREATE VIEW IF NOT EXISTS {table.name} AS {_chosen(table, store)}")
        except duckdb.Error as error:
            raise ReportError(
                f"cannot read the table {table.name} of {store.path}: {str(error).splitlines()[0]}"
            ) from error


def definitions(store: Stored) -> list[str]:
    """Return the SQL that creates a view for each table of a report as it is here.

    One CREATE VIEW each.
    """
    return [f"CREATE OR REPLACE VIEW {table.name} AS {_chosen(table, store)};" for table in TABLES.values()]


def _chosen(table: Table, store: Stored) -> str:
    """Return the SELECT over a table.

    Where one window is chosen, payloads are those of the events that are left.
    """
    relation = _relation(table, store.pieces(table.name))
    return (
        f"SELECT * FROM ({relation}) WHERE {payload_condition()}"
        if table.name == "payloads" and store.cuts is not None
        else relation
    )


def _relation(table: Table, pieces: list[TableFile]) -> str:
    """Return the SELECT over a table's files.

    Those of other hosts are shifted onto the first one's clock, then all are cut.
    """
    if not pieces:
        columns = ", ".join(_column(column, 0, True, cut=None) for column in table.columns)
        return f"SELECT {columns} WHERE false"
    groups: dict[tuple[int, Window | None, Calls | None, tuple[str, ...]], list[str]] = {}
    for piece in pieces:
        groups.setdefault((piece.shift, piece.cut, piece.calls, piece.missing), []).append(
            quoted(str(piece.file.resolve()))
        )
    selects = []
    for (shift, cut, calls, missing), files in groups.items():
        columns = ", ".join(
            _column(column, shift, column.name in missing, cut=cut if calls is None else None)
            for column in table.columns
        )
        select = f"SELECT {columns} FROM read_parquet([{', '.join(files)}]) AS file"
        selects.append(
            select
            if cut is None
            else f"{select} WHERE {_inside(table, cut[0] - shift, cut[1] - shift, calls=calls)}"
        )
    return " UNION ALL ".join(selects)


def _inside(table: Table, begin: int, end: int, calls: Calls | None) -> str:
    """Return the SQL condition for rows of a file that overlap [begin, end), or have one of the calls."""
    # The names alone would mean the columns of the view, which are cut already.
    own = (
        overlap(begin, end, "file.")
        if "end" in table.edges
        else f'file."start" >= {begin} AND file."start" < {end}'
    )
    if calls is None:
        return own
    return " OR ".join(
        [
            f"(file.api IS NULL AND {own})",
            *(f"(file.api >= {first} AND file.api < {behind})" for first, behind in calls),
        ]
    )


def _column(column: Column, clock: int, missing: bool, cut: Window | None) -> str:
    """Return a column of a file whose clock is behind by `clock` ns."""
    name, shift = quoted_name(column.name), clock if column.clock else 0
    if missing:
        return f"NULL::{_SQL_TYPES[column.type]} AS {name}"
    shifted = f"file.{name} + {shift}" if shift else f"file.{name}"
    if cut is not None and column.spread:
        inside = f'least(file."end", {cut[1] - clock}) - greatest(file."start", {cut[0] - clock})'
        shifted = share(shifted, inside, 'file."end" - file."start"')
    elif cut is not None and column.name == "start":
        shifted = f"greatest({shifted}, {cut[0]})"
    elif cut is not None and column.name == "end":
        shifted = f"least({shifted}, {cut[1]})"
    return f"{shifted} AS {name}"


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


def spill_folder() -> str:
    """Make a folder for temporary files that nobody else can look into, or put anything into.

    Empty if there is no place for one.
    """
    try:
        return tempfile.mkdtemp(prefix="warplens-query-")
    except OSError:
        return ""


def memory_limit() -> int:
    """Return the bytes that SQL may take if nobody says how many."""
    return max(min(int(available() * _MEMORY_SHARE), _MEMORY_MOST), _MEMORY_LEAST)
