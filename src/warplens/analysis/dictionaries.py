"""Columns of texts as codes and a dictionary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def codes(column: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return a string column's dictionary codes (-1: null) and its dictionary."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = coded.indices.cast(pa.int32())
    filled = indices.fill_null(-1) if indices.null_count else indices
    return filled.to_numpy(zero_copy_only=False), coded.dictionary
