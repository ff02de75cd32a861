"""NumPy array types that annotations name: times, ids, row numbers and sums are `Int64Array`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def int32(value: int) -> int:
    """Return the low half of a number with its sign: `0xFFFFFFFF` is -1, as in priorities of CUDA."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def positions_in(ids: Int64Array, wanted: Int64Array) -> tuple[Int64Array, BoolArray]:
    """Return where each id of `wanted` stands in `ids` (rising; 0 where it does not), and whether it does."""
    place = np.searchsorted(ids, wanted)
    known = place < len(ids)
    known[known] = ids[place[known]] == wanted[known]
    return np.where(known, place, 0), known
