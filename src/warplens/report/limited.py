"""Runs one SELECT for an untrusted client, with limits on the rows and bytes of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from warplens.errors import QueryError
from warplens.model.tables import TABLES
from warplens.report.untrusted import check

if TYPE_CHECKING:
    from warplens.report.report import Report

_BATCH = 512  # rows


def limited(report: Report, text: str, *, rows: int, size: int) -> tuple[pa.Table, bool]:
    """Run one SELECT over the report's tables.

    Return its rows, and whether there were more than `rows`, or than fit into `size` bytes.

    Raises QueryError, also for a single row that does not fit. The caller limits time and memory.
    """
    cursor = report.cursor(text)
    try:
        check(cursor, text)
        return _taken(cursor.sql(text).limit(rows + 1), rows, size)
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from error
    except duckdb.CatalogException as error:
        raise QueryError(f"{str(error).strip()}\nTables: {', '.join(TABLES)}.") from error
    except duckdb.Error as error:
        raise QueryError(str(error).strip()) from error
    finally:
        cursor.close()


def _taken(relation: duckdb.DuckDBPyRelation, rows: int, size: int) -> tuple[pa.Table, bool]:
    read = (
        relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
    )  # before DuckDB 1.4
    reader = read(_BATCH)
    batches: list[pa.RecordBatch] = []
    taken, cut = 0, False
    for batch in reader:
        fits = _fitting(batch, size - taken)
        if fits == 0 and not batches:
            raise QueryError(
                f"one row of the answer is larger than {size >> 20} MiB: select less of it, e.g. "
                "left(text, 1000)"
            )
        batches.append(batch.slice(0, fits))
        taken += batch.nbytes
        if fits < batch.num_rows:
            cut = True
            break
    table = pa.Table.from_batches(batches, reader.schema)
    return table.slice(0, rows), cut or table.num_rows > rows


def _fitting(batch: pa.RecordBatch, size: int) -> int:
    """Return how many of the first rows fit into `size` bytes."""
    low: int = 0
    high: int = batch.num_rows
    if batch.nbytes <= size:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if batch.slice(0, middle).nbytes <= size else (low, middle)
    return low
