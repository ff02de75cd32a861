"""Batches for the native functions of the index: rows, numbers of tracks and names."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

_P, _U32, _U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
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


def numbers(values: Any) -> npt.NDArray[np.uint32]:
    """Return numbers of tracks or names as the library takes them.

    Those that do not fit are left out.
    """
    wanted = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int64).ravel()
    return np.ascontiguousarray(wanted[(wanted >= 0) & (wanted < 1 << 32)], np.uint32)
