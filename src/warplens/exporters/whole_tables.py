"""A table of a report as it is, piece by piece: for formats that hold one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.errors import UsageError
from warplens.exporters.tracks import batches
from warplens.model.tables import TABLES

if TYPE_CHECKING:
    from warplens.report import Report


def schema_of(table: str, *, texts: bool = True) -> pa.Schema:
    """Return the columns of a table with what they mean; `texts`: dictionaries are texts.

    Raises UsageError for an unknown table.
    """
    from warplens.storage.schema import schema

    if table not in TABLES:
        raise UsageError(f"a report has no table {table!r}; there are: {', '.join(TABLES)}.")
    wanted = schema(table)
    for place, item in enumerate(wanted if texts else ()):
        if pa.types.is_dictionary(item.type):
            wanted = wanted.set(place, item.with_type(item.type.value_type))
    return wanted


def pieces(report: Report, table: str, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in the order of the report, with the columns of `wanted`."""
    for batch in batches(report, table, wanted.names, most=1 << 18):
        columns = [
            column if column.type == item.type else column.cast(item.type)
            for item, column in zip(wanted, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)
