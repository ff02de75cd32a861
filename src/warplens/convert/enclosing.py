"""Finds the innermost push/pop range around each of many points in time.

Both go by in order of start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array, distinct
from warplens.spool.events import RANGES, Events

_COLUMNS = ("thread", "start", "end", "id", "style")
Columns = Mapping[str, Int64Array]


def of_slice(events: Events) -> Columns:
    """Return the ranges of the current slice."""
    ranges = events.table(RANGES)
    return {name: ranges.column(name).to_numpy() for name in _COLUMNS}


class Around:
    """The ranges that are open on some threads.

    `threads` count from `base`, as those of ranges do.
    """

    def __init__(self, threads: npt.NDArray[np.int32], base: int = 0) -> None:
        self._base = base
        watched = distinct(threads.astype(np.int64)) + base
        self._enclosing = native.make("enclosing_new", watched)

    def find(
        self, ranges: Columns, thread: npt.NDArray[np.int32], start: Int64Array, out: Int64Array
    ) -> None:
        """Take the next ranges, and put into `out` which one is around each of the next points.

        -1: none.

        Points lie before all later ranges.
        """
        keys = self._base + thread.astype(np.int64)
        batch = pa.RecordBatch.from_pydict({name: ranges[name] for name in _COLUMNS}) if ranges else None
        points = pa.RecordBatch.from_pydict({"thread": keys, "time": start})
        native.call("enclosing_add", self._enclosing, batch, points, out)

    def among(self, ranges: Stream, thread: npt.NDArray[np.int32], start: Int64Array) -> Int64Array:
        """Return which range is around each of the next points, -1 for none.

        The ranges up to there are taken from `ranges`.
        """
        range_ids = np.full(len(start), -1, np.int64)
        done = 0
        for some in ranges.until(int(start[-1])) if len(start) else ():
            behind = int(np.searchsorted(start, some["start"][-1], side="left"))
            self.find(some, thread[done:behind], start[done:behind], out=range_ids[done:behind])
            done = behind
        self.find({}, thread[done:], start[done:], out=range_ids[done:])
        return range_ids


class Stream:
    """Ranges that come in pieces, in order of start, and are taken as far as somebody looks."""

    def __init__(self, pieces: Iterable[Columns]) -> None:
        self._pieces = iter(pieces)
        self._left: Columns | None = None

    def until(self, time: int) -> Iterator[Columns]:
        """Return the next ranges that begin no later than `time`; no piece is empty."""
        while (some := self._left or next(self._pieces, None)) is not None:
            behind = int(np.searchsorted(some["start"], time, side="right"))
            whole = behind == len(some["start"])
            self._left = None if whole else {name: column[behind:] for name, column in some.items()}
            if behind:
                yield some if whole else {name: column[:behind] for name, column in some.items()}
            if not whole:
                return


class Enclosing:
    """Points in order of `start`, all at once; `thread` counts from `base`.

    `range_ids` has the id of a range, -1 without one.
    """

    def __init__(self, thread: npt.NDArray[np.int32], start: Int64Array, base: int = 0) -> None:
        self._thread, self._start = thread, start
        self.range_ids = np.full(len(start), -1, np.int64)
        self._done = 0
        self._around = Around(thread, base)

    def pass_by(self, ranges: Columns) -> None:
        """Take the next ranges, in order of start: later ones begin no earlier than the last of them."""
        if len(ranges["start"]):
            self._take(ranges, int(np.searchsorted(self._start, ranges["start"][-1], side="left")))

    def finish(self) -> None:
        """Look at the points behind the last range."""
        self._take({}, len(self._start))

    def column(self, rows: slice) -> pa.Array:
        """Return what was found for some points; null without a range."""
        return column(self.range_ids[rows])

    def _take(self, ranges: Columns, until: int) -> None:
        rows = slice(self._done, max(until, self._done))
        self._around.find(ranges, self._thread[rows], self._start[rows], self.range_ids[rows])
        self._done = rows.stop


def column(range_ids: Int64Array) -> pa.Array:
    """Return ids as a column; null for -1."""
    return pa.array(range_ids, mask=range_ids < 0)
