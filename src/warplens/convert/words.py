"""Numbers of a spool in the words of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SMALL = 1 << 16


def labelled(
    numbers: npt.NDArray[Any], labels: Mapping[int, str], absent: npt.NDArray[np.bool_] | None = None
) -> pa.DictionaryArray:
    """Return numbers as words; those that have none are called `kind N`.

    `absent`: rows that are null.
    """
    used, codes = numbers[:1], np.zeros(len(numbers), np.intp)
    if len(numbers) and not (numbers == numbers[0]).all():  # columns of most programs say one thing
        used, codes = _distinct(numbers)
    words = [labels.get(number, f"kind {number}") for number in used.tolist()]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.reshape(-1).astype(np.int32), mask=absent), pa.array(words, pa.string())
    )


def _distinct(numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return which numbers there are, and which of them each is."""
    most = int(numbers.max())
    if int(numbers.min()) < 0 or most >= _SMALL:
        used, codes = np.unique(numbers, return_inverse=True)
        return used, codes.reshape(-1)
    met = np.zeros(most + 1, bool)
    met[numbers] = True
    return np.flatnonzero(met), (np.cumsum(met) - 1)[numbers]


def optional(values: npt.NDArray[Any], nothing: int) -> pa.Array:
    """Return numbers with null if they are `nothing`."""
    return pa.array(values.astype(np.int64), mask=values == nothing)
