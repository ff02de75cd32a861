"""Reads the result of SQL piece by piece, for results larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from warplens.errors import QueryError

if TYPE_CHECKING:
    from warplens.report.report import Report


def batches(report: Report, text: str) -> Iterator[pa.RecordBatch]:
    """Run one SELECT and yield its result while it is made. Raises QueryError."""
    cursor = report.connection().cursor()
    try:
        relation = cursor.sql(text)
        if relation is not None:
            yield from pa.RecordBatchReader.from_stream(relation)
    except (duckdb.Error, pa.ArrowException) as error:
        raise QueryError(str(error).strip()) from error
    finally:
        cursor.close()
