"""The native functions of the index, over NumPy memory."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.spool.desk import load

_P, _I32, _U32, _I64, _U64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
_SIGNATURES: dict[str, tuple[list[type], type | None]] = {
    "new": ([_U64], _P),
    "free": ([_P], None),
    "add": ([_P, _P], _I64),
    "fresh": ([_P, _P], _P),
    "taken": ([_P], None),
    "disordered": ([_P], _I64),
    "close": ([_P, _P, _U64], _I64),
    "nodes": ([_P], _I64),
    "records": ([_P, _U32, _P], _P),
    "keys": ([_P, _P], None),
    "open": ([_P, _U64, _P, _P], _P),
    "close_index": ([_P], None),
    "viewport": ([_P, _I64, _I64, _P, _P, _U64, _U64, _P], _P),
    "rects": ([_P, *[_P] * 8], None),
    "find": ([_P, _P, _U64, _I64, _I64, _P, _U64, _U64, _I32, _P, _P, _P], _I64),
    "at": ([_P, _U32, _U32, _I64, _P, _P, _P], _I64),
    "locate": ([_P, _P, _U64, _U32, _P, _P, _P, _P], _I64),
    "load": ([_P, _P, _U64, _I64, _I64, _P, _P], _I64),
    "cells": ([_P, _P, _U64, _I64, _I64, _U32, _P, _U64, _P, _P, _P], _I64),
    "sums": ([_P, _P, _U64, _I64, _I64, _P, _P, _P], _I64),
}
KEYS = 4  # numbers that say which track of a layer it is


class Batch(ctypes.Structure):
    """`Batch` of `native/reader/index/builder.h`."""

    _fields_ = (
        ("rows", _U64),
        ("start", _P),
        ("end", _P),
        ("keys", _P * KEYS),
        ("id", _P),
        ("code", _P),
        ("texts", _P),
        ("texts_count", _U64),
        ("color", _P),
        ("color_valid", _P),
        ("color_offset", _U64),
        ("depth", _P),
        ("task", _P),
        ("link", _P),
        ("first_row", _U64),
        ("layer", _U32),
        ("spare", _U32),
    )


@lru_cache(maxsize=1)
def library() -> dict[str, Any]:
    """Return the functions of `_SIGNATURES` by name. Raises WarplensError when the library is missing."""
    loaded = load()
    functions = {}
    for name, (arguments, result) in _SIGNATURES.items():
        function = getattr(loaded, f"warplens_lod_{name}")
        function.argtypes, function.restype = arguments, result
        functions[name] = function
    return functions


def call(name: str, *arguments: Any) -> int:
    """Call a function that returns a count, or a negative error. Raises MemoryError."""
    result = int(library()[name](*arguments))
    if result < 0:
        raise MemoryError(f"the index of the timeline: out of memory in {name}")
    return result


def made(name: str, *arguments: Any) -> int:
    """Call a function that returns what it made. Raises MemoryError."""
    result = library()[name](*arguments)
    if not result:
        raise MemoryError(f"the index of the timeline: out of memory in {name}")
    return int(result)


def address(array: npt.NDArray[Any]) -> int:
    """Return where the data of a contiguous array lies."""
    return int(array.ctypes.data)


def memory(name: str, *arguments: Any) -> memoryview:
    """Call a function that returns where something lies, and how many bytes: valid until the next call."""
    size = _U64()
    start = library()[name](*arguments, ctypes.byref(size))
    return memoryview((ctypes.c_uint8 * size.value).from_address(start)).cast("B") if size.value else memoryview(b"")


def numbers(values: Any) -> npt.NDArray[np.uint32]:
    """Return numbers of tracks or names as the library takes them; those that do not fit are left out."""
    found = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64).ravel()
    return np.ascontiguousarray(found[(found >= 0) & (found < 1 << 32)], np.uint32)
