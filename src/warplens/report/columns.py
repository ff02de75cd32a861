"""Columns of Arrow as arrays of NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.arrays import Int64Array


def integers(table: pa.Table | pa.RecordBatch, name: str) -> Int64Array:
    """Return a column of integers without nulls."""
    return np.asarray(table.column(name).to_numpy(), np.int64)


def as_numbers(column: pa.ChunkedArray | pa.Array) -> Int64Array:
    """Return a column of integers; -1 stands for null."""
    filled = pc.fill_null(pc.cast(column, pa.int64()), -1)
    return np.asarray(
        filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False),
        np.int64,
    )


def coded(column: pa.ChunkedArray) -> tuple[list[str], Int64Array]:
    """Return the texts of a dictionary column, and of each row the number of its text, -1 for null.

    Without pyarrow.compute, which takes longer to load than a short run.
    """
    whole = column.unify_dictionaries().combine_chunks()
    codes = whole.indices.to_numpy(zero_copy_only=False)  # where some are null: floats, and NaN for these
    return whole.dictionary.to_pylist(), np.nan_to_num(codes, nan=-1).astype(np.int64)
