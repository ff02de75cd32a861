"""Loads the library and calls its functions.

The library lists them with their types (native/reader/door.h).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from warplens.errors import WarplensError
from warplens.native.values import Handle, Type, type_of

ABI = 8  # what `warplens_reader_abi_version` of door.cpp returns
_NO_MEMORY, _WRONG_ARGUMENT = 1, 2


class _Failure(ctypes.Structure):
    """`Failure` of door.h."""

    _fields_ = (("kind", ctypes.c_int32), ("text", ctypes.c_char * 124))


class _TableEntry(ctypes.Structure):
    """`Function` of door.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("types", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class NativeFunction:
    """A function of the library: the types of its result and of its arguments, as the library gives them."""

    name: str
    result: Type
    arguments: tuple[Type, ...]
    call: Callable[..., Any]
    free: Callable[[int], None] | None

    def __call__(self, *arguments: Any) -> Any:
        """Call it.

        TypeError for arguments of other types or another number; ValueError where they do not fit
        together; MemoryError.
        """
        if len(arguments) != len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} arguments, not {len(arguments)}")
        try:
            raw = [kind.pass_in(value) for kind, value in zip(self.arguments, arguments, strict=True)]
        except TypeError as error:
            wrong = next(
                at
                for at, (kind, value) in enumerate(zip(self.arguments, arguments, strict=True), 1)
                if not kind.takes(value)
            )
            raise TypeError(f"argument {wrong} of {self.name}: {error}") from error
        failure = _Failure()
        result = self.call(ctypes.byref(failure), *raw)
        if failure.kind == _NO_MEMORY:
            raise MemoryError(f"the native library ran out of memory in {self.name}")
        if failure.kind == _WRONG_ARGUMENT:
            raise ValueError(f"{self.name}: {failure.text.decode(errors='replace')}")
        owner = arguments[0] if arguments and isinstance(arguments[0], Handle) else None
        return self.result.take_out(result, owner)


@lru_cache(maxsize=1)
def library() -> dict[str, NativeFunction]:
    """Return the functions of the library by name.

    Raises WarplensError when it is missing or of another version.
    """
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    prefix = "" if sys.platform == "win32" else "lib"
    path = Path(__file__).parents[1] / "_lib" / f"{prefix}warplens_reader{suffix}"
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise WarplensError(
            f"cannot load {path}: {error}; build it with `make native` or reinstall warplens"
        ) from error
    if loaded.warplens_reader_abi_version() != ABI:
        raise WarplensError(f"{path} belongs to another version of warplens; rebuild it with `make native`")
    table, count = loaded.warplens_reader_functions, ctypes.c_uint64()
    table.argtypes, table.restype = [ctypes.c_void_p], ctypes.POINTER(_TableEntry)
    entries = table(ctypes.byref(count))
    functions = [_function(entries[number]) for number in range(count.value)]
    return {function.name: function for function in functions}


def call(name: str, *arguments: Any) -> Any:
    """Call a function that returns a number, or an array of the library's: a view that is good until the next call with its handle.

    Arrays must have the type that the function takes, and their values side by side; None stands for no array.
    """
    return library()[name](*arguments)


def make(name: str, *arguments: Any) -> Handle:
    """Call a function that makes an object; it is freed with the handle."""
    function = library()[name]
    if function.free is None:
        raise TypeError(f"{name} makes no object")
    return Handle(function(*arguments), function.result.name, function.free)


def _function(entry: _TableEntry) -> NativeFunction:
    name, types = entry.name.decode(), entry.types.decode().split(" ")
    result, *arguments = (type_of(text) for text in types)
    prototype = ctypes.CFUNCTYPE(result.raw, ctypes.c_void_p, *(kind.raw for kind in arguments))
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry.free) if entry.free else None
    return NativeFunction(name, result, tuple(arguments), call=prototype(entry.address), free=free)
