"""Native functions over columns of ranges: unions, clocks, nesting, lanes."""

from __future__ import annotations

import numpy as np

from warplens.arrays import Int32Array, Int64Array
from warplens.native.library import call, make


def unite(start: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the union of intervals that come sorted by start."""
    first, last = np.empty_like(start), np.empty_like(end)
    count = call("unite_intervals", start, end, first, last)
    return first[:count], last[:count]


def map_times(source: Int64Array, target: Int64Array, times: Int64Array) -> Int64Array:
    """Map times through the knots `source` -> `target`: linear between them, the outer offsets beyond."""
    out = np.empty_like(times)
    call("map_times", source, target, times, out)
    return out


class Nests:
    """Nesting of push/pop ranges, which arrive in batches in order of start, the longer first."""

    def __init__(self) -> None:
        self._nests = make("nests_new")

    def add(self, thread: Int64Array, start: Int64Array, end: Int64Array) -> tuple[Int32Array, Int64Array]:
        """Return depth and parent (row number from the first ranges on, -1 for none) of the next ranges."""
        depth, parent = np.empty(len(start), np.int32), np.empty(len(start), np.int64)
        call("nests_add", self._nests, thread, start, end, depth, parent)
        return depth, parent


def nest(thread: Int64Array, start: Int64Array, end: Int64Array) -> tuple[Int32Array, Int64Array]:
    """Return depth and parent (row number, -1 for none) of push/pop ranges sorted by start, the longer first."""
    return Nests().add(thread, start, end)


def lanes(start: Int64Array, end: Int64Array) -> Int32Array:
    """Return the smallest free lane of each of one process's start/end ranges, sorted by start."""
    lane = np.empty(len(start), np.int32)
    call("process_lanes", start, end, lane)
    return lane
