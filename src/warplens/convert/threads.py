"""Finds the thread of a call. Threads have system ids, which are used again when they end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.spool.reader import UNKNOWN_THREAD, SpoolNames
from warplens.spool.wide import WideRecords

_TID = (1 << 31) - 1
_SPARSE = 16  # system ids are looked up in a table if it is at most this many times longer than the calls


class Threads:
    """The threads of a spool. Those that made calls and nothing else are added to its names."""

    def __init__(self, names: SpoolNames, of: dict[int, list[tuple[int, int]]], following: int) -> None:
        """`of`: system id -> when each thread was first seen, its index; `following`: index of the next one."""
        self._names, self._of, self._next = names, of, following

    @classmethod
    def of_spool(cls, names: SpoolNames, seen: Int64Array) -> Threads:
        """Return the threads of a spool. `seen`: index, first start and number of events of each thread with events."""
        first = {index: start for index, start, _ in seen.tolist()}
        of: dict[int, list[tuple[int, int]]] = {}
        for index, (tid, _, start) in sorted(names.threads.items()):
            if tid:
                begin = min(start or first.get(index, 0), first.get(index, start))
                of.setdefault(tid, []).append((begin, index))
        known = [
            min(index, UNKNOWN_THREAD - 1) for index in (*first, *names.threads) if index != UNKNOWN_THREAD
        ]
        return cls(names, of, max(known, default=-1) + 1)

    def match(self, tid: Int64Array, time: Int64Array, *, known: bool = False) -> npt.NDArray[np.int32]:
        """Return the index of the thread that had each system id at each time; times rise.

        `known`: none is added, and threads that did nothing else are -1: they may be our own.
        """
        out = np.full(len(tid), UNKNOWN_THREAD, np.int32)
        used, code = _coded(tid)
        order = np.argsort(code, kind="stable")
        edges = np.searchsorted(code[order], np.arange(len(used) + 1))
        for one, (begin, end) in zip(used.tolist(), pairwise(edges.tolist()), strict=True):
            mine = order[begin:end]
            if known and one not in self._of:
                out[mine] = -1
                continue
            lives = sorted(self._of.get(one, ())) or self._add(one, int(time[mine[0]]))
            starts, indexes = np.array(
                [(start, min(index, UNKNOWN_THREAD)) for start, index in lives], np.int64
            ).T
            # What came before the first one was seen is its own, too.
            out[mine] = indexes[np.maximum(np.searchsorted(starts, time[mine], side="right") - 1, 0)]
            self._see(lives[0][1], int(time[mine[0]]))
        return out

    def of(self, tid: Int64Array) -> npt.NDArray[np.int32]:
        """Return the indexes of all threads that had one of these system ids, one after the other."""
        threads = {min(index, UNKNOWN_THREAD) for one in tid.tolist() for _, index in self._of.get(one, ())}
        return np.array(sorted(threads), np.int32)

    def name(self, records: WideRecords | None) -> None:
        """Give threads without a name that of the system at their first call.

        All calls are matched.
        """
        if records is None:
            return
        for tid, start, text in zip(
            *(records.column(column).tolist() for column in ("tid", "start", "name")), strict=True
        ):
            lives = sorted(self._of.get(tid, ()))
            index = max(
                (life for life in lives if life[0] <= start), default=(0, lives[0][1] if lives else -1)
            )[1]
            known, name, begin = self._names.threads.get(index, (0, 1, 0))
            if not name:
                self._names.threads[index] = (known, text, begin)

    def _add(self, tid: int, begin: int) -> list[tuple[int, int]]:
        index = min(self._next, UNKNOWN_THREAD)
        self._next += 1
        if index != UNKNOWN_THREAD:
            self._names.threads[index] = (tid & _TID, 0, begin)
        self._of[tid] = [(begin, index)]
        return self._of[tid]

    def _see(self, index: int, begin: int) -> None:
        """A call may be the first thing that is known of a thread."""
        if index in self._names.threads:
            tid, name, start = self._names.threads[index]
            self._names.threads[index] = (tid, name, min(start, begin) if start else begin)


def _coded(tid: Int64Array) -> tuple[Int64Array, npt.NDArray[Any]]:
    """Return the distinct values, rising, and of each value which of these it is.

    In 16 bits where these are enough: such numbers are sorted in no time.
    """
    if not len(tid):
        return tid, np.empty(0, np.uint16)
    low = int(tid.min())
    span = int(tid.max()) - low + 1
    if span > max(_SPARSE * len(tid), 1 << 12):
        used, code = np.unique(tid, return_inverse=True)
        return used, code.reshape(-1).astype(np.uint16 if len(used) <= 1 << 16 else np.int64)
    place = tid - low
    met = np.zeros(span, bool)
    met[place] = True
    used = np.flatnonzero(met)
    number = np.zeros(span, np.uint16 if len(used) <= 1 << 16 else np.int64)
    number[used] = np.arange(len(used))
    return used + low, number[place]
