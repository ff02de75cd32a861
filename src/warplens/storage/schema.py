"""Arrow schemas of the model's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.model.tables import TABLES, Column, Table

_TYPES: dict[str, pa.DataType] = {
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "dict": pa.dictionary(pa.int32(), pa.string()),
}


def field(column: Column) -> pa.Field:
    """Return the Arrow field of one column; its description and unit travel as metadata."""
    metadata = {
        "description": column.text,
        "unit": column.unit,
        **({"spread": "true"} if column.spread else {}),
    }
    return pa.field(column.name, _TYPES[column.type], nullable=column.nullable, metadata=metadata)


def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return the NumPy type of the model's numbers.

    `to_pandas_dtype` of pyarrow 25, the last for Python 3.10, fails without pandas.
    """
    return np.dtype(str(kind))  # names of numbers are those of NumPy: int16, uint64, double


@cache
def schema(table: Table | str) -> pa.Schema:
    """Return the Arrow schema of a table of the model. KeyError for an unknown name."""
    known = TABLES[table] if isinstance(table, str) else table
    return pa.schema([field(column) for column in known.columns], metadata={"description": known.text})


def empty(table: str) -> pa.Table:
    """Return the table with its types and no rows."""
    return schema(table).empty_table()


def complete(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return the columns of `wanted` in its order and types.

    Those that an older file lacks are null.
    """
    columns = [
        _array(rows.column(item.name), item.type)
        if item.name in rows.column_names
        else pa.nulls(rows.num_rows, item.type)
        for item in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


def build(table: str, columns: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pa.Table:
    """Make a table from columns (name -> values) or rows.

    Missing nullable columns become null, types are those of the model.

    Raises ValueError or a pyarrow error when a value does not fit, KeyError for a missing column that may not be null.
    """
    wanted = schema(table)
    if not isinstance(columns, Mapping):
        rows = columns
        columns = (
            {name: [row.get(name) for row in rows] for name in wanted.names}
            if rows
            else {name: [] for name in wanted.names}
        )
    length = len(next(iter(columns.values()))) if columns else 0
    arrays = []
    for item in wanted:
        if item.name in columns:
            arrays.append(_array(columns[item.name], item.type))
        elif item.nullable:
            arrays.append(pa.nulls(length, item.type))
        else:
            raise KeyError(f"{table} needs the column {item.name!r}")
    return pa.Table.from_arrays(arrays, schema=wanted)


def _array(values: Any, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type == wanted else values.cast(wanted)
    return pa.array(values, wanted)
