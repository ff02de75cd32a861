"""The table `cuda_api`, with the innermost NVTX push/pop range around each call."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpline.report import schema
from warpline.report.cuda import names
from warpline.report.cuda.place import Place, groups
from warpline.spool import desk
from warpline.spool.events import RANGES, Events
from warpline.spool.wide import WideRecords

_APIS = pa.array(["runtime", "driver"])


class _Ranges(ctypes.Structure):
    """Enclosing::Ranges of the desk library."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("thread", "start", "end", "id", "style")] + [("count", ctypes.c_size_t)]


class Api:
    """The rows of one process; the ranges of NVTX go by while they are written."""

    def __init__(self, records: WideRecords, place: Place) -> None:
        self._records, self._place = records, place
        calls = place.calls
        self._start = place.clock(calls.start if calls.kept.all() else calls.start[calls.kept])
        self._range = np.full(len(self._start), -1, np.int64)
        self._done = 0
        watched = np.unique(calls.thread).astype(np.int64) + place.thread_base
        self._handle = desk.library()["enclosing_new"](desk.address(watched), len(watched))
        if not self._handle:
            raise MemoryError("the desk library ran out of memory")
        self._free = weakref.finalize(self, desk.library()["enclosing_free"], self._handle)

    def pass_by(self, events: Events, rows: int) -> None:
        """Take the ranges of the current slice: `rows` of them."""
        if not rows:
            return
        kinds = {"thread": np.int64, "start": np.int64, "end": np.int64, "id": np.int64, "style": np.int32}
        columns = {name: events.column(RANGES, name, kind) for name, kind in kinds.items()}
        # Later slices begin no earlier than this one's last range.
        self._take(columns, int(np.searchsorted(self._start, columns["start"][-1], side="left")))

    def finish(self) -> Iterator[pa.Table]:
        """Return the rows, after the last slice."""
        self._take({}, len(self._start))
        self._free()
        place, calls = self._place, self._place.calls
        functions = names.Names(place.strings, names.call)
        span = calls.span if calls.kept.all() else calls.span[calls.kept]
        for rows in groups(len(calls.offsets)):
            found = self._records.rows(calls.offsets[rows])
            (name,) = functions.columns(found["name"])
            place.asked.add(rows, found, place.spans, span[rows])
            columns = {
                **place.ids(rows),
                "thread": pa.array(place.thread_base + calls.thread[rows].astype(np.int64)),
                "start": pa.array(self._start[rows]),
                "end": pa.array(place.clock(found["end"].astype(np.int64))),
                "api": pa.DictionaryArray.from_arrays(pa.array(np.minimum(found["domain"], 1).astype(np.int32)), _APIS),
                "name": name,
                "result": pa.array(found["result"].astype(np.int32)),
                "correlation": pa.array(found["correlation"].astype(np.int64)),
                "range": pa.array(self._range[rows], mask=self._range[rows] < 0),
            }
            yield schema.build("cuda_api", columns)

    def _take(self, columns: dict[str, npt.NDArray[np.int64]], until: int) -> None:
        ranges = _Ranges(*(desk.address(column) for column in columns.values()), count=len(columns["start"]) if columns else 0)
        rows = slice(self._done, max(until, self._done))
        thread = self._place.thread_base + self._place.calls.thread[rows].astype(np.int64)
        start, out = self._start[rows], self._range[rows]
        where = (desk.address(thread), desk.address(start), len(start), desk.address(out))
        desk.call("enclosing_add", self._handle, ctypes.addressof(ranges), *where)
        self._done = rows.stop
