"""The native desk library through ctypes: typed functions over NumPy arrays."""

from __future__ import annotations

import ctypes
import sys
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.errors import WarplensError

ABI = 7

_P, _U32, _U64, _I64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
_SIGNATURES: dict[str, tuple[list[Any], Any]] = {
    "abi_version": ([], _U32),
    "new": ([_P], _P),
    "free": ([_P], None),
    "choose": ([_P, _P, _P, _U64], _I64),
    "scan": ([_P, _P, _U64, _U64, _U32], _I64),
    "open": ([_P, _P, _P, _U64], _I64),
    "plan": ([_P, _U64], _I64),
    "assign": ([_P, _P, _U64, _U64], _I64),
    "keys": ([_P, _I64, _I64, _I64], _I64),
    "set_strings": ([_P, _P, _U64, _U64], _I64),
    "set_clock": ([_P, _P, _P, _U64], _I64),
    "set_makers": ([_P, _P, _P, _U64], _I64),
    "slice": ([_P, _P, _U64, _P], _I64),
    "follow": ([_P], None),
    "young_from": ([_P, _U64], None),
    "young_start": ([_P], _U64),
    "owner": ([_P], _U32),
    "wait_for": ([_P, _P, _P, _U64], _I64),
    "cut_at": ([_P, _U64, _U64], _U64),
    "cut": ([_P, _P, _U64], _I64),
    "splits": ([_P, _P, _U64], _I64),
    "late": ([_P], _I64),
    "waiting": ([_P, _P], _I64),
    "column": ([_P, _U32, ctypes.c_char_p, _P], _P),
    "segments": ([_P, _P, _U64], _I64),
    "meta": ([_P, _P, _U64], _I64),
    "last_events": ([_P, _P, _U64], _I64),
    "threads": ([_P, _P, _U64], _I64),
    "tasks": ([_P, _P, _U64], _I64),
    "rows_of": ([_P, _P, _U64, _P], _I64),
    "blob_chunks": ([_P, _P, _P, _U64], _I64),
    "blobs_walk": ([_P, _P, _P, _U64], _I64),
    "blobs_found": ([_P, *[_P] * 5], None),
    "gather": ([_P, _P, _P, _U64, _P], None),
    "counts": ([_P, _P], None),
    "strings": ([_P, _U64, _U64, _P, _P, _P, _P, _P], _I64),
    "unite": ([_P, _P, _U64, _P, _P], _I64),
    "map_times": ([_P, _P, _U64, _P, _P, _U64], _I64),
    "nests_new": ([], _P),
    "nests_free": ([_P], None),
    "nest": ([_P, _I64, _P, _P, _P, _U64, _P, _P], _I64),
    "lanes": ([_P, _P, _U64, _P], _I64),
    "demangle": ([ctypes.c_char_p, _P, _U64], _I64),
    "enclosing_new": ([_P, _U64], _P),
    "enclosing_free": ([_P], None),
    "enclosing_add": ([_P, _P, _P, _P, _U64, _P], _I64),
}


@lru_cache(maxsize=1)
def load() -> ctypes.CDLL:
    """Load the library once. Raises WarplensError when it is missing or of another version."""
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    prefix = "" if sys.platform == "win32" else "lib"
    path = Path(__file__).parents[1] / "_lib" / f"{prefix}warplens_desk{suffix}"
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise WarplensError(f"cannot load {path}: {error}; build it with `make native` or reinstall warplens") from error
    if loaded.warplens_desk_abi_version() != ABI:
        raise WarplensError(f"{path} belongs to another version of warplens; build it again with `make native`")
    return loaded


@lru_cache(maxsize=1)
def library() -> dict[str, Any]:
    """Return the functions of `_SIGNATURES` by name, without `warplens_desk_`. Raises WarplensError when the library is missing."""
    loaded = load()
    functions = {}
    for name, (arguments, result) in _SIGNATURES.items():
        function = getattr(loaded, f"warplens_desk_{name}")
        function.argtypes, function.restype = arguments, result
        functions[name] = function
    return functions


def call(name: str, *arguments: Any) -> int:
    """Call a function that returns a count, or a negative error. Raises MemoryError."""
    result = int(library()[name](*arguments))
    if result < 0:
        raise MemoryError(f"the desk library ran out of memory in {name}")
    return result


def address(array: npt.NDArray[Any]) -> int:
    """Return where a contiguous array's data lies."""
    return int(array.ctypes.data)


def unite(start: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the union of intervals that come sorted by start."""
    first, last = np.empty_like(start), np.empty_like(end)
    count = call("unite", address(start), address(end), len(start), address(first), address(last))
    return first[:count], last[:count]


def map_times(source: Int64Array, target: Int64Array, times: Int64Array) -> Int64Array:
    """Map times through the knots `source` -> `target`: linear between them, the outer offsets beyond."""
    out = np.empty_like(times)
    call("map_times", address(source), address(target), len(source), address(times), address(out), len(times))
    return out


class Nests:
    """How push/pop ranges lie within one another; they come in order of start, the longer first, some at a time."""

    def __init__(self) -> None:
        self._handle = library()["nests_new"]()
        if not self._handle:
            raise MemoryError("the desk library ran out of memory")
        self._rows = 0
        weakref.finalize(self, library()["nests_free"], self._handle)

    def add(self, thread: Int64Array, start: Int64Array, end: Int64Array) -> tuple[npt.NDArray[np.int32], Int64Array]:
        """Return depth and parent (row number from the first ranges on, -1 for none) of the next ranges."""
        depth, parent = np.empty(len(start), np.int32), np.empty(len(start), np.int64)
        columns = (address(thread), address(start), address(end))
        call("nest", self._handle, self._rows, *columns, len(start), address(depth), address(parent))
        self._rows += len(start)
        return depth, parent


def nest(thread: Int64Array, start: Int64Array, end: Int64Array) -> tuple[npt.NDArray[np.int32], Int64Array]:
    """Return depth and parent (row number, -1 for none) of push/pop ranges sorted by start, the longer first."""
    return Nests().add(thread, start, end)


def lanes(start: Int64Array, end: Int64Array) -> npt.NDArray[np.int32]:
    """Return the smallest free lane of each of one process's start/end ranges, sorted by start."""
    lane = np.empty(len(start), np.int32)
    call("lanes", address(start), address(end), len(start), address(lane))
    return lane


LONGEST_NAME = 8192  # bytes, mangled or not


def demangle(name: str) -> str | None:
    """Return a C++ name as people write it, cut where it gets too long; None where it is no mangled name, or too long a one."""
    raw = name.encode("utf-8", errors="replace")
    if not raw.startswith(b"_Z") or len(raw) > LONGEST_NAME or b"\0" in raw:
        return None
    out = ctypes.create_string_buffer(LONGEST_NAME)
    size = call("demangle", raw, out, LONGEST_NAME)
    return out.raw[:size].decode("utf-8", errors="replace") if size else None
