"""Tables that cross by Arrow's C data interface: each column comes with its name and its type."""

from __future__ import annotations

import ctypes

import pyarrow as pa


class _ArrowArray(ctypes.Structure):
    """`ArrowArray` of the interface."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *(
            (name, ctypes.c_void_p)
            for name in ("buffers", "children", "dictionary", "release", "private_data")
        ),
    ]


class _ArrowSchema(ctypes.Structure):
    """`ArrowSchema` of the interface."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("format", "name", "metadata")),
        *((name, ctypes.c_int64) for name in ("flags", "n_children")),
        *((name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private_data")),
    ]


class ArrowTable(ctypes.Structure):
    """`ArrowTable` of native/reader/arrow.h. Its memory is freed by the side that takes it, or with this."""

    _fields_ = [("array", _ArrowArray), ("schema", _ArrowSchema)]

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> ArrowTable:
        """Return columns as they cross. Nothing is copied; they keep the memory of `rows`."""
        table = cls()
        rows._export_to_c(*table._addresses())
        return table

    def take(self) -> pa.RecordBatch:
        """Return the columns that came, once."""
        return pa.RecordBatch._import_from_c(*self._addresses())

    def __del__(self) -> None:
        if self.array.release:
            self.take()

    def _addresses(self) -> tuple[int, int]:
        return ctypes.addressof(self.array), ctypes.addressof(self.schema)
