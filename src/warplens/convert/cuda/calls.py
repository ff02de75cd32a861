"""The CUDA API calls of one process: those that count, their threads, and the GPU work of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import BoolArray, Int64Array
from warplens.convert.chosen import Spans, sane
from warplens.convert.cuda.nested import nested
from warplens.convert.cuda.own import OwnCalls
from warplens.convert.threads import Threads
from warplens.spool.wide import WideRecords

_SPARSE = 4  # correlations are looked up in a table, if it is at most this many times longer than the calls


@dataclass
class Calls:
    """All calls in order of start.

    Calls are called by their number in that order; `kept` says which become rows. `offsets` and
    `thread` are of the rows, `nested` says which calls the runtime made itself, if they are here
    all the same.
    """

    start: Int64Array
    correlation: Int64Array
    span: npt.NDArray[np.int32]
    kept: BoolArray
    offsets: Int64Array
    thread: npt.NDArray[np.int32]
    nested: BoolArray | None
    last_end: int
    damaged: int
    _own: BoolArray | None
    _spans: Spans
    _began: int
    _row: npt.NDArray[np.int32]
    _table: npt.NDArray[np.int32] | None = None
    _least: int = 0
    _sorted: Int64Array | None = None

    @classmethod
    def of(
        cls,
        records: WideRecords | None,
        spans: Spans,
        threads: Threads,
        began: int,
        *,
        all_apis: bool | None = None,
        own: OwnCalls | None = None,
    ) -> Calls:
        """Put the calls of a process in order.

        `began`: when the process began (ns), before any call.

        `all_apis`: whether calls within others are wanted; None: not known.

        `own`: calls of the agent, which are no rows, nor is their work.
        """
        nothing = np.empty(0, np.int64)
        start, end = (
            (nothing, nothing) if records is None else (records.column("start"), records.column("end"))
        )
        good = np.flatnonzero(sane(start, end))
        damaged = len(start) - len(good)
        # Of calls that begin at once the longer one is around the other; of those that end at once, too, the runtime's.
        driver = np.empty(0, bool) if records is None else records.column("domain") != 0
        mixed = bool(driver.any())
        order = good[np.lexsort((*((driver[good],) if mixed else ()), -end[good], start[good]))]
        del good
        order = order.astype(np.uint32)  # memory is what limits how many there may be
        within: BoolArray | None = None
        if mixed and records is not None:
            inner = nested(driver[order], records.column("tid")[order], start=start[order], end=end[order])
            # The agent leaves them out, where it sees both at once.
            extra = inner.copy() if not all_apis else np.zeros(len(inner), bool)
            if all_apis is None:
                correlation = records.column("correlation")[order]
                extra[inner] = np.isin(correlation[inner], correlation[~driver[order]])
            order, within = order[~extra], inner[~extra]
        del driver
        begins: Int64Array = start[order]
        kept = spans.overlap(begins, end[order])
        ours: BoolArray | None = None
        if own is not None and records is not None:
            ours = own.holds(records.column("tid")[order], begins, end[order])
            kept &= ~ours
        last_end = int(end[order].max(initial=0))
        del start, end
        rows = order[kept]
        tids = nothing if records is None else records.column("tid")[rows]
        return cls(
            begins,
            nothing if records is None else records.column("correlation")[order],
            spans.place(begins).astype(np.int32),
            kept=kept,
            offsets=nothing if records is None else records.offsets()[rows],
            thread=threads.match(tids, begins[kept]),
            nested=within,
            last_end=last_end,
            damaged=damaged,
            _own=ours,
            _spans=spans,
            _began=began,
            _row=np.cumsum(kept, dtype=np.int32) - 1,
        )

    def written(self) -> None:
        """Forget what only the rows of `cuda_api` need: they are written."""
        self.offsets, self.thread = np.empty(0, np.int64), np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self.start)

    def find(self, correlation: Int64Array) -> Int64Array:
        """Return the call with each correlation, -1 without one.

        Where several have it, it is the first of them: the outermost.
        """
        if not len(self.start) or not len(correlation):
            return np.full(len(correlation), -1, np.int64)
        if self._table is None and self._sorted is None:
            self._index()
        if self._table is not None:
            place = correlation - self._least
            inside = (place >= 0) & (place < len(self._table)) & (correlation != 0)
            return np.where(inside, self._table[np.where(inside, place, 0)], -1).astype(np.int64)
        order = self._by_correlation()
        nearest = order[np.minimum(np.searchsorted(self.correlation[order], correlation), len(order) - 1)]
        return np.where((self.correlation[nearest] == correlation) & (correlation != 0), nearest, -1)

    def are_own(self, call: Int64Array) -> npt.NDArray[np.bool_]:
        """Say which of these calls the agent made itself; -1 is none."""
        return np.zeros(len(call), bool) if self._own is None else np.append(self._own, False)[call]

    def launched_inside(
        self, call: Int64Array, correlation: Int64Array, start: Int64Array, end: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """Say which GPU work the program launched within a span.

        The work has calls, correlations and times on the GPU.

        Correlations rise as calls are made. So where a call was not recorded, it was made between the calls with the numbers around it.
        """
        if self._spans.all:
            return ~self.are_own(call)
        if not len(self.start):
            return self._spans.overlap(start, end)
        inside = np.append(self.span, -1)[call] >= 0
        odd = np.flatnonzero(call < 0)
        if len(odd):
            inside[odd] = self._between(correlation[odd], start[odd], end[odd])
        return inside & ~self.are_own(call)

    def _between(self, correlation: Int64Array, start: Int64Array, end: Int64Array) -> npt.NDArray[np.bool_]:
        order = self._by_correlation()
        place = np.searchsorted(self.correlation[order], correlation)
        first = self._spans.place(np.array([self._began], np.int64))
        spans = np.concatenate([first, self.span[order], [-2]])  # what lies before all calls, and behind them
        before, after = spans[place], spans[place + 1]
        known = (before >= 0) & ((start < self._spans.end(before)) | (before == after))
        return np.where(correlation == 0, self._spans.overlap(start, end), known)

    def ids(self, call: Int64Array, first: int) -> pa.Array:
        """Return the ids of calls as a column, `first` being that of the first row.

        Null for -1 and for calls that are no rows.
        """
        known = call >= 0
        known[known] = self.kept[call[known]]
        return pa.array(first + self._row[call].astype(np.int64) if len(self._row) else call, mask=~known)

    def rows(self, call: Int64Array) -> Int64Array:
        """Return the rows of calls, counted from 0; -1 for -1 and for calls that are no rows."""
        known = call >= 0
        known[known] = self.kept[call[known]]
        return np.where(known, np.append(self._row, -1)[call], -1)

    def _index(self) -> None:
        least, most = int(self.correlation.min()), int(self.correlation.max())
        if most - least <= _SPARSE * len(self.start) + (1 << 16):
            self._least = least
            self._table = np.full(most - least + 1, -1, np.int32)
            # The first ones last: they stay.
            self._table[self.correlation[::-1] - least] = np.arange(
                len(self.start) - 1, -1, -1, dtype=np.int32
            )
        else:
            self._by_correlation()

    def _by_correlation(self) -> Int64Array:
        if self._sorted is None:
            self._sorted = np.argsort(self.correlation, kind="stable")
        return self._sorted
