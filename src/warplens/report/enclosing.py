"""Finds the innermost NVTX push/pop range around each of many points in time, while the ranges go by slice by slice."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.spool import desk
from warplens.spool.events import RANGES, Events

KINDS = {"thread": np.int64, "start": np.int64, "end": np.int64, "id": np.int64, "style": np.int32}
Columns = Mapping[str, npt.NDArray[np.int64]]


class _Ranges(ctypes.Structure):
    """Enclosing::Ranges of the desk library."""

    _fields_ = [(name, ctypes.c_void_p) for name in KINDS] + [("count", ctypes.c_size_t)]


def of_slice(events: Events) -> Columns:
    """Return the ranges of the current slice; good until the next one is made."""
    return {name: events.column(RANGES, name, kind) for name, kind in KINDS.items()}


class Enclosing:
    """Points in order of `start`; `thread` counts from `base`, as the ranges' threads do. `found` is the id of a range, -1 without one."""

    def __init__(self, thread: npt.NDArray[np.int32], start: npt.NDArray[np.int64], base: int = 0) -> None:
        self._thread, self._start, self._base = thread, start, base
        self.found = np.full(len(start), -1, np.int64)
        self._done = 0
        watched = np.unique(thread).astype(np.int64) + base
        self._handle = desk.library()["enclosing_new"](desk.address(watched), len(watched))
        if not self._handle:
            raise MemoryError("the desk library ran out of memory")
        self._free = weakref.finalize(self, desk.library()["enclosing_free"], self._handle)

    def pass_by(self, ranges: Columns) -> None:
        """Take the next ranges, in order of start: later ones begin no earlier than the last of them."""
        if len(ranges["start"]):
            self._take(ranges, int(np.searchsorted(self._start, ranges["start"][-1], side="left")))

    def finish(self) -> None:
        """Look at the points behind the last range."""
        self._take({}, len(self._start))
        self._free()

    def column(self, rows: slice) -> pa.Array:
        """Return what was found for some points; null without a range."""
        return pa.array(self.found[rows], mask=self.found[rows] < 0)

    def _take(self, ranges: Columns, until: int) -> None:
        some = _Ranges(*(desk.address(ranges[name]) for name in KINDS), count=len(ranges["start"])) if ranges else _Ranges()
        rows = slice(self._done, max(until, self._done))
        thread = self._base + self._thread[rows].astype(np.int64)
        start, out = self._start[rows], self.found[rows]
        where = (desk.address(thread), desk.address(start), len(start), desk.address(out))
        desk.call("enclosing_add", self._handle, ctypes.addressof(some), *where)
        self._done = rows.stop
