"""Exact statistics of range durations by style, domain and name.

Streamed through `native/reader/analysis/group_stats.cpp`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens import native
from warplens.analysis.dictionaries import codes
from warplens.report.row_groups import Reader, RowGroup, each, row_groups, threads

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_KEYS = ("style", "domain", "message")
_SHIFTS = np.array([0, 4, 32], np.uint8)  # the names get most bits: there are most of them
_MASKS = (0xF, (1 << 28) - 1, (1 << 32) - 1)


def range_durations(report: Report, selection: Selection) -> tuple[pa.Table, Counter[str]]:
    """Return a row per style, domain and name, and how many unfinished ranges of each style are in them.

    Columns: style, domain, message (strings), then in ns count, total, median, min, max, stddev (of a sample; 0 for one range).
    Ranges that overlap the selection count with their whole length.
    """
    window = selection.window(report)
    reader = Reader("nvtx_ranges", window)
    unfinished: Counter[str] = Counter()
    with Durations() as durations:

        def read_group(group: RowGroup) -> None:
            marked = group.may_be_true("unfinished")
            rows = reader.read(group, ["start", "end", *_KEYS, *(["unfinished"] if marked else [])])
            durations.add(rows)
            if marked:
                unfinished.update(rows.filter(rows.column("unfinished")).column("style").to_pylist())

        each(row_groups(report, "nvtx_ranges", window), read_group)
        return durations.result(), unfinished


class Durations:
    """Collects durations by style, domain and message; `add` may run in several threads at once."""

    def __init__(self) -> None:
        self._interners = [_Interner() for _ in _KEYS]
        self._handles: list[native.Handle] = [native.make("durations_new")]
        self._idle = self._handles[:]
        self._lock = threading.Lock()

    def __enter__(self) -> Durations:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        while self._handles:
            self._handles.pop().close()

    def add(self, rows: pa.Table) -> None:
        """Add rows with `start` and `end` (int64) and the three texts (strings or dictionaries)."""
        with self._lock:
            if not self._idle:
                self._handles.append(native.make("durations_new"))
                self._idle.append(self._handles[-1])
            handle = self._idle.pop()
        for batch in rows.to_batches():
            self._add(handle, batch)
        with self._lock:
            self._idle.append(handle)

    def _add(self, handle: native.Handle, batch: pa.RecordBatch) -> None:
        start, end = (batch.column(name).to_numpy(zero_copy_only=True) for name in ("start", "end"))
        coded, maps = [], []
        for name, interner in zip(_KEYS, self._interners, strict=True):
            numbers, dictionary = codes(batch.column(name))
            coded.append(numbers)
            maps.append(interner.numbers(dictionary))
        native.call("durations_add", handle, start, end, *coded, *maps, _SHIFTS)

    def result(self, ranks: Mapping[str, float] | None = None) -> pa.Table:
        """Return a row per group, in no order: the keys, then count, total, median, min, max, stddev.

        `ranks`: more columns -> share (0 to 1): the least duration that this share of them does not exceed.
        """
        first = self._handles[0]
        for other in self._handles[1:]:
            native.call("durations_merge", first, other)
        groups = native.call("durations_groups", first)
        key = np.empty(groups, np.uint64)
        count, total, least, greatest = (np.empty(groups, np.int64) for _ in range(4))
        median, deviation = (np.empty(groups, np.float64) for _ in range(2))
        results = key, count, total, least, greatest, median, deviation
        edges = [groups * step // (4 * threads()) for step in range(4 * threads() + 1)]
        with ThreadPoolExecutor(threads()) as pool:
            for _ in pool.map(
                lambda pair: native.call("durations_finish", first, *pair, *results), pairwise(edges)
            ):
                pass
        more = {name: np.empty(groups, np.int64) for name in ranks or {}}
        for name, rank in more.items():
            native.call("durations_rank", first, (ranks or {})[name], rank)
        self._close()  # before the texts of a million groups are written
        columns = {}
        for name, interner, shift, mask in zip(_KEYS, self._interners, _SHIFTS, _MASKS, strict=True):
            columns[name] = interner.texts((key >> np.uint64(shift)) & np.uint64(mask))
        values: dict[str, npt.NDArray[Any]] = {
            "count": count,
            "total": total,
            "median": median,
            "min": least,
            "max": greatest,
            "stddev": deviation,
            **more,
        }
        return pa.table({**columns, **{name: pa.array(array) for name, array in values.items()}})


class _Interner:
    """Numbers the values of one string column from 1, over all dictionaries it comes in; 0 is null.

    Thread-safe.

    Texts stay Arrow's: a million of them as Python's take 300 MB.
    """

    def __init__(self) -> None:
        self._known: pa.Array = pa.array([], pa.large_string())
        self._lock = threading.Lock()

    def numbers(self, dictionary: pa.Array) -> npt.NDArray[np.uint64]:
        """Return the number of each value of a dictionary, after a leading 0 for null."""
        texts = dictionary.cast(pa.large_string())
        with self._lock:
            if len(self._known):
                place = pc.index_in(texts, value_set=self._known)
                fresh = pc.unique(pc.drop_null(texts.filter(pc.is_null(place)))) if place.null_count else None
            else:
                place, fresh = None, pc.unique(pc.drop_null(texts))
            if fresh is not None and len(fresh):
                whole = place is None and len(fresh) == len(
                    texts
                )  # it is the first one, and each text stands once in it
                self._known = pa.concat_arrays([self._known, fresh])
                place = None if whole else pc.index_in(texts, value_set=self._known)
                if whole:
                    return np.arange(len(texts) + 1, dtype=np.uint64)
        numbers = np.zeros(len(texts) + 1, np.uint64)
        if place is not None:
            numbers[1:] = pc.fill_null(place, -1).to_numpy() + 1
        return numbers

    def texts(self, numbers: npt.NDArray[np.uint64]) -> pa.Array:
        """Return the values that belong to numbers."""
        places = pa.array(numbers.astype(np.int64) - 1, mask=numbers == 0)
        return self._known.take(places).cast(pa.string())
