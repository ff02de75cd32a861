"""The native functions of this package: group statistics, lane placement, the Perfetto encoder."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.spool.desk import load

_P, _I32, _U32, _I64, _U64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
_SIGNATURES: dict[str, tuple[list[type], type | None]] = {
    "durations_new": ([], _P),
    "durations_free": ([_P], None),
    "durations_add": ([_P, _I64, _P, _P, _P, _I32, _P, _P, _P, _P], None),
    "durations_merge": ([_P, _P], None),
    "durations_groups": ([_P], _I64),
    "durations_finish": ([_P, _I64, _I64, *[_P] * 7], None),
    "durations_rank": ([_P, _I64, _I64, ctypes.c_double, _P], None),
    "lanes_new": ([_I32], _P),
    "lanes_free": ([_P], None),
    "lanes_add": ([_P, _I64, *[_P] * 6], None),
    "perfetto_new": ([_I32, _U64, _U32], _P),
    "perfetto_free": ([_P], None),
    "perfetto_ranges": ([_P, _P], None),
    "perfetto_marks": ([_P, _P], None),
    "perfetto_samples": ([_P, _P], None),
    "perfetto_stages": ([_P, _P], None),
    "perfetto_touch": ([_P, _I32], None),
    "perfetto_finish": ([_P], None),
    "perfetto_bytes": ([_P, _P], _P),
    "perfetto_fresh": ([_P, _P], _P),
    "perfetto_clear": ([_P], None),
}


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Return the desk library with this package's functions declared. Raises WarplensError when it is missing."""
    loaded = load()
    for name, (arguments, result) in _SIGNATURES.items():
        function = getattr(loaded, f"warplens_{name}")
        function.argtypes, function.restype = arguments, result
    return loaded


def codes(column: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return a string column's dictionary codes (-1: null) and its dictionary."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = coded.indices.cast(pa.int32())
    filled = indices.fill_null(-1) if indices.null_count else indices
    return filled.to_numpy(zero_copy_only=False), coded.dictionary


@lru_cache(maxsize=1)
def _together() -> Callable[..., int]:
    function = load().warplens_together
    function.argtypes, function.restype = [*[_P] * 5, _U64, *[_P] * 10], _I64
    typed: Callable[..., int] = function
    return typed


def together(*arguments: int | None) -> int:
    """Find what goes on at the same time in blocks (native/reader/analysis/together.cpp); a negative number where there is no memory."""
    return _together()(*arguments)
