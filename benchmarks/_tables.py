"""Shared code of the report generators: builds columns in the form that report tables need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.storage.schema import schema

if TYPE_CHECKING:
    from warplens.storage.writer import PartWriter

Numbers = npt.NDArray[Any]


def texts(codes: Numbers, values: list[str]) -> pa.Array:
    """Return texts as a dictionary: `codes` are places in `values`."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(values))


def write(part: PartWriter, table: str, columns: dict[str, Numbers | pa.Array]) -> None:
    """Write rows of a table, all columns of one length; what is not given is null."""
    wanted = schema(table)
    count = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[item.name]).cast(item.type) if item.name in columns else pa.nulls(count, item.type)
        for item in wanted
    ]
    part.write(table, pa.Table.from_arrays(arrays, schema=wanted))
