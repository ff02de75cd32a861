"""Converts values for the native library and back. Each type checks its values."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.native.arrow import ArrowTable

_NUMBERS = {
    "i4": ctypes.c_int32,
    "i8": ctypes.c_int64,
    "u4": ctypes.c_uint32,
    "u8": ctypes.c_uint64,
    "f8": ctypes.c_double,
}


class _Array(ctypes.Structure):
    """`Array<T>` of door.h."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_uint64))


class Handle:
    """An object of the library. It is freed by `close`, or with the last reference to this."""

    def __init__(self, address: int, kind: str, free: Callable[[int], None]) -> None:
        self.kind = kind
        self._address: int | None = address
        self._free = weakref.finalize(self, free, address)

    @property
    def address(self) -> int:
        """Where the object lies. ValueError after `close`."""
        if self._address is None:
            raise ValueError("the native object is closed")
        return self._address

    def close(self) -> None:
        """Free the object; more than once does nothing."""
        self._address = None
        self._free()


class Type:
    """A type of an argument or a result, as the library names it. `raw`: what ctypes passes."""

    raw: Any
    name: str

    def takes(self, value: Any) -> bool:
        """Whether `pass_in` takes a value."""
        try:
            self.pass_in(value)
        except TypeError:
            return False
        return True

    def pass_in(self, value: Any) -> Any:
        """Return what ctypes passes for a value. TypeError for one of another type."""
        raise TypeError("cannot be passed")

    def take_out(self, raw: Any, owner: Handle | None) -> Any:
        """Return the value of a result. `owner`: the object whose memory it may be."""
        return raw


class _Number(Type):
    def __init__(self, name: str) -> None:
        self.name, self.raw = name, _NUMBERS[name]
        self._least, self._greatest = _limits(name)

    def pass_in(self, value: Any) -> Any:
        number = (
            float(value) if self.name == "f8" else value.__index__() if hasattr(value, "__index__") else None
        )
        if number is None:
            raise TypeError(f"a number is needed, not {type(value).__name__}")
        if not self._least <= number <= self._greatest:
            raise OverflowError(f"{number} does not fit into {self.name}")
        return number


def _limits(name: str) -> tuple[float, float]:
    if name[0] == "f":
        return -np.inf, np.inf
    limits = np.iinfo(name)
    return int(limits.min), int(limits.max)


class _Values(Type):
    """An array: `i8[]` is read, `i8[]=` is filled."""

    raw = _Array

    def __init__(self, name: str) -> None:
        self.name = name
        element, _, self._filled = name.partition("[]")
        self._structure = int(element[1:]) if element[0] == "V" else 0
        self._dtype = np.dtype(element)

    def pass_in(self, value: Any) -> _Array:
        if value is None:
            return _Array()
        if isinstance(value, bytes) and self._dtype == np.uint8 and not self._filled:
            value = np.frombuffer(value, np.uint8)
        if not isinstance(value, np.ndarray):
            raise TypeError(f"an array of {self._dtype} is needed, not {type(value).__name__}")
        fits = value.dtype == self._dtype or (
            self._structure and value.dtype.kind == "V" and value.dtype.itemsize == self._structure
        )
        if not fits:
            raise TypeError(f"an array of {self._dtype} is needed, not of {value.dtype}")
        if not value.flags.c_contiguous:
            raise TypeError("the values of the array are not contiguous")
        if self._filled and not value.flags.writeable:
            raise TypeError("the array is read-only")
        return _Array(value.ctypes.data, value.size)

    def take_out(self, raw: _Array, owner: Handle | None) -> npt.NDArray[Any]:
        if not raw.size:
            return np.empty(0, self._dtype)
        block = (ctypes.c_uint8 * (raw.size * self._dtype.itemsize)).from_address(raw.data)
        block.owner = owner  # it lives as long as the view
        view = np.frombuffer(block, self._dtype)
        view.flags.writeable = False
        return view


class _HandleType(Type):
    """A handle, of the class that the library names."""

    raw = ctypes.c_void_p

    def __init__(self, name: str) -> None:
        self.name = name

    def pass_in(self, value: Any) -> int:
        if not isinstance(value, Handle) or value.kind != self.name:
            given = value.kind if isinstance(value, Handle) else type(value).__name__
            raise TypeError(f"a native object {self.name[1:]} is needed, not {given}")
        return value.address


class _GivenTable(Type):
    """Columns by name, as a record batch; nothing is copied. None: no columns."""

    name, raw = "table", ctypes.c_void_p

    def pass_in(self, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, pa.RecordBatch):
            raise TypeError(f"a record batch is needed, not {type(value).__name__}")
        return ctypes.byref(ArrowTable.of(value))


class _TableResult(Type):
    """Columns by name, as a record batch; nothing is copied. Their memory lives as long as they do."""

    name, raw = "table=", ArrowTable

    def take_out(self, raw: ArrowTable, owner: Handle | None) -> pa.RecordBatch:
        return raw.take()


def type_of(text: str) -> Type:
    """Return the type that the library calls so."""
    if text in _NUMBERS:
        return _Number(text)
    if text.startswith("*"):
        return _HandleType(text)
    if text.startswith("table"):
        return _GivenTable() if text == _GivenTable.name else _TableResult()
    return _Values(text)
