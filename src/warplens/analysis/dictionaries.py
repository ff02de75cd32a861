"""Columns of texts as codes and a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def codes(column: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return a string column's dictionary codes (-1: null) and its dictionary."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = coded.indices.cast(pa.int32())
    filled = indices.fill_null(-1) if indices.null_count else indices
    return filled.to_numpy(zero_copy_only=False), coded.dictionary


def numbered(
    column: pa.Array, number: Callable[[Any], int], kind: pa.DataType, missing: int | None = None
) -> pa.DictionaryArray:
    """Return a string column as codes of the numbers that its texts have.

    Nulls become the number `missing`; without one they stay.
    """
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    numbers = [number(text) for text in coded.dictionary.to_pylist()]
    indices = coded.indices.cast(pa.int32())
    if missing is not None and indices.null_count:
        indices = indices.fill_null(len(numbers))
        numbers.append(missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array(numbers, kind), safe=False)
