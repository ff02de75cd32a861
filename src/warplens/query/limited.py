"""A question of somebody who must not take the machine for it: one SELECT, for so long, with so many rows and bytes of answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from warplens.errors import QueryError
from warplens.model.tables import TABLES
from warplens.query.untrusted import check

if TYPE_CHECKING:
    from warplens.query.report import Report

_BATCH = 512  # rows


def limited(report: Report, text: str, *, seconds: float, rows: int, size: int) -> tuple[pa.Table, bool]:
    """Run one SELECT over the report's tables; return its rows, and whether there were more than `rows`, or than fit into `size` bytes.

    Raises QueryError, also where it takes longer than `seconds`.
    """
    cursor = report.cursor(text)
    over = threading.Event()

    def stop() -> None:
        over.set()
        cursor.interrupt()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        check(cursor, text)
        return _taken(cursor.sql(text).limit(rows + 1), rows, size)
    except duckdb.Error as error:
        if over.is_set():
            raise QueryError(f"the question took longer than {seconds:g} s: ask about less time, or add LIMIT and WHERE") from error
        if isinstance(error, duckdb.CatalogException):
            raise QueryError(f"{str(error).strip()}\nTables: {', '.join(TABLES)}.") from error
        raise QueryError(str(error).strip()) from error
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise QueryError(f"the answer is too large to be given: {str(error).strip()[:200]}") from error
    finally:
        timer.cancel()
        timer.join()  # it must not interrupt who comes next
        cursor.close()


def _taken(relation: duckdb.DuckDBPyRelation, rows: int, size: int) -> tuple[pa.Table, bool]:
    read = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader  # before DuckDB 1.4
    reader = read(_BATCH)
    batches, taken, cut = [], 0, False
    for batch in reader:
        batches.append(batch)
        taken += batch.nbytes
        if taken > size:
            cut = True
            break
    table = pa.Table.from_batches(batches, reader.schema)
    return table.slice(0, rows), cut or table.num_rows > rows
