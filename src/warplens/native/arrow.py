"""Columns of the native library by Arrow's C data interface: each comes with its name and its type."""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow as pa

from warplens.native.library import call


class _ArrowSchema(ctypes.Structure):
    """`ArrowSchema` of the interface: filled by the library, emptied by pyarrow."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("format", "name", "metadata")),
        *((name, ctypes.c_int64) for name in ("flags", "n_children")),
        *((name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private_data")),
    ]


class _ArrowArray(ctypes.Structure):
    """`ArrowArray` of the interface."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *(
            (name, ctypes.c_void_p)
            for name in ("buffers", "children", "dictionary", "release", "private_data")
        ),
    ]


def table(name: str, *arguments: Any) -> pa.RecordBatch:
    """Call a function that gives columns; nothing is copied. Their memory lives as long as they do."""
    schema, array = _ArrowSchema(), _ArrowArray()
    call(name, *arguments, schema, array)
    return pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
