"""Longest paths through points in time, by the native library."""

from __future__ import annotations

import ctypes
import weakref
from functools import lru_cache

import numpy as np

from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.spool.desk import address, load

UNKNOWN = np.iinfo(np.int64).min

_P, _I64, _U64 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64
_SIGNATURES: dict[str, tuple[list[type], type | None]] = {
    "new": ([_P, _P, _U64, _U64], _P),
    "free": ([_P], None),
    "sorted": ([_P], _U64),
    "observe": ([_P] * 6, _U64),
    "times": ([_P] * 5, None),
    "latest": ([_P, _P, _P, _I64, _P], None),
}


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    loaded = load()
    for name, (arguments, result) in _SIGNATURES.items():
        function = getattr(loaded, f"warplens_critical_{name}")
        function.argtypes, function.restype = arguments, result
    return loaded


class Dag:
    """Points in time and edges between them: `to` comes at least `weight` ns after `from`.

    `observed`: when each point was seen, UNKNOWN for the latest time that an edge asks for. `time`: of each point; `delay`: what it
    came later than its edges ask for, which it keeps when weights change; `binding`: the edge that decides, -1 without one; `dead`: how
    many edges asked for more than was observed, and are left out. Raises ReportError for a graph with a circle.
    """

    def __init__(self, start: Int64Array, end: Int64Array, weight: Int64Array, observed: Int64Array) -> None:
        self._from, self._to, self._weight, self._observed = (_plain(values) for values in (start, end, weight, observed))
        points = len(observed)
        self._handle = _library().warplens_critical_new(address(self._from), address(self._to), len(self._from), points)
        if not self._handle:
            raise MemoryError("the desk library ran out of memory")
        self._free = weakref.finalize(self, _library().warplens_critical_free, self._handle)
        if _library().warplens_critical_sorted(self._handle) != points:
            raise ReportError("what waits for what goes round in a circle in this report: its times contradict each other")
        self.time, self.delay, self.binding = (np.empty(points, np.int64) for _ in range(3))
        self.dead = 0
        self.observe(self._weight)

    def observe(self, weight: Int64Array) -> None:
        """Work out times, delays and what binds, with these weights from now on."""
        self._weight = _plain(weight)
        out = (address(values) for values in (self.time, self.delay, self.binding))
        self.dead = int(_library().warplens_critical_observe(self._handle, address(self._weight), address(self._observed), *out))

    def times(self, weight: Int64Array) -> Int64Array:
        """Return when each point comes if edges have other weights."""
        weight, times = _plain(weight), np.empty_like(self.time)
        inputs = (address(values) for values in (weight, self.delay, self.time))
        _library().warplens_critical_times(self._handle, *inputs, address(times))
        return times

    def latest(self, last: int) -> Int64Array:
        """Return how late each point may come so that no point comes after `last`."""
        latest = np.empty_like(self.time)
        _library().warplens_critical_latest(self._handle, address(self._weight), address(self.delay), last, address(latest))
        return latest


def _plain(values: Int64Array) -> Int64Array:
    return np.ascontiguousarray(values, np.int64)
