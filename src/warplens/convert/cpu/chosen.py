"""Chooses the records of one type that become rows, in order of start, some at a time.

Those with valid times in a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import BoolArray, Int64Array
from warplens.convert.chosen import sane
from warplens.convert.place import Place
from warplens.spool.wide import WideRecords

NONE = 0xFFFFFFFF
_SAMPLE_EVERY = 64  # records: one start in this many is read to cut time into slices
_GAP = 16  # records that do not count may lie between two that are read together


@dataclass(frozen=True)
class Piece:
    """Rows that are made at once.

    Their numbers in the table, their records, and of each thread, start and end (the spool's
    clock).
    """

    rows: slice
    fields: npt.NDArray[Any]
    thread: npt.NDArray[np.int32]
    start: Int64Array
    end: Int64Array


@dataclass(frozen=True)
class _Choice:
    """Which records become rows: those with valid times in a window of the process, of some `domains` (None: all)."""

    place: Place
    domains: tuple[int, ...] | None

    def of(self, records: npt.NDArray[Any]) -> BoolArray:
        """Say of each record whether it has a chosen domain."""
        if self.domains is None:
            return np.ones(len(records), bool)
        mine: BoolArray = np.zeros(len(records), bool)
        for one in self.domains:  # np.isin takes longer for the few that a short process has
            mine |= records["domain"] == one
        return mine

    def kept(self, records: npt.NDArray[Any], start: Int64Array, end: Int64Array) -> BoolArray:
        """Say of each record whether it becomes a row."""
        kept = sane(start, end) & self.of(records)
        return kept if self.place.spans.all else kept & self.place.spans.overlap(start, end)

    def counted(self, block: npt.NDArray[Any]) -> tuple[Int64Array, Int64Array]:
        """Return start and thread of the records that become rows, and count damaged ones."""
        start, end = block["start"].astype(np.int64), block["end"].astype(np.int64)
        odd = ~sane(start, end)
        if odd.any():
            self.place.tally.damaged += int((odd & self.of(block)).sum())
        kept = self.kept(block, start, end)
        return (
            (start, block["tid"].astype(np.int64))
            if kept.all()
            else (start[kept], block["tid"][kept].astype(np.int64))
        )


class Chosen:
    """Some records of the process `place`.

    They are read twice: to cut time into slices of some rows, then slice by slice.
    """

    def __init__(
        self,
        records: WideRecords,
        choice: _Choice,
        count: int,
        *,
        threads: npt.NDArray[np.int32],
        bounds: Int64Array,
    ) -> None:
        """`count`: number of rows; `bounds`: begins of the slices."""
        self._records, self._choice, self._place = records, choice, choice.place
        self._count, self.threads, self._bounds = count, threads, bounds
        self._runs: tuple[Int64Array, Int64Array, Int64Array] | None = None

    @classmethod
    def of(cls, records: WideRecords, place: Place, *, domains: tuple[int, ...] | None = None) -> Chosen:
        """Choose records, of some domains only. Counts the damaged ones and adds their threads to those of the place."""
        choice, count, samples = _Choice(place, domains), 0, []
        first: dict[int, int] = {}  # when each thread was first seen
        for _, block in records.blocks():
            start, tid = choice.counted(block)
            samples.append(start[-count % _SAMPLE_EVERY :: _SAMPLE_EVERY].copy())
            count += len(start)
            if len(tid):
                _first_of(tid, start, first)
        tids = np.array(sorted(first, key=lambda tid: first[tid]), np.int64)
        place.threads.match(tids, np.array([first[tid] for tid in tids.tolist()], np.int64))
        bounds = _bounds(np.concatenate([np.empty(0, np.int64), *samples]), -(-count // place.step))
        return cls(records, choice, count, threads=place.threads.of(tids), bounds=bounds)

    def __len__(self) -> int:
        return self._count

    def pieces(self) -> Iterator[Piece]:
        """Return the rows; this may be called again."""
        if self._runs is None:
            self._runs = self._assigned()
        offsets, counts, edges = self._runs
        row = 0
        for number, (begin, behind) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            fields = self._records.stretches(offsets[begin:behind], counts[begin:behind])
            start, end = fields["start"].astype(np.int64), fields["end"].astype(np.int64)
            order = np.flatnonzero(self._kept(fields, start, end) & self._within(start, number))
            order = _in_order(order, start, end)
            if len(order) < len(fields) or not (order[1:] > order[:-1]).all():
                fields, start, end = _taken(fields, order), start[order], end[order]
            for some in self._place.groups(len(fields)):
                thread = self._place.threads.match(fields["tid"][some].astype(np.int64), start[some])
                rows = slice(row + some.start, row + some.stop)
                yield Piece(rows, fields[some], thread, start=start[some], end=end[some])
            row += len(fields)

    def columns(self, piece: Piece) -> dict[str, pa.Array]:
        """Return the columns that all tables have."""
        place = self._place
        return place.ids(piece.rows) | {
            "thread": pa.array(place.thread_base + piece.thread.astype(np.int64)),
            "start": pa.array(place.clock(piece.start)),
            "end": pa.array(place.clock(piece.end)),
        }

    def _kept(self, records: npt.NDArray[Any], start: Int64Array, end: Int64Array) -> BoolArray:
        if self._count == len(self._records):  # all records become rows
            return np.ones(len(records), bool)
        return self._choice.kept(records, start, end)

    def _within(self, start: Int64Array, number: int) -> BoolArray:
        """Say which times lie in a slice."""
        within: BoolArray = start >= self._bounds[number] if number else np.ones(len(start), bool)
        return within & (start < self._bounds[number + 1]) if number + 1 < len(self._bounds) else within

    def _assigned(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the stretches of records that hold the rows of a slice: offsets, lengths, and the edges of slices."""
        size = self._records.size
        runs: list[tuple[Int64Array, Int64Array, Int64Array]] = []
        for offsets, block in self._records.blocks():
            start = block["start"].astype(np.int64)
            at = np.flatnonzero(self._kept(block, start, block["end"].astype(np.int64)))
            if not len(at):
                continue
            # Rows of one slice whose records lie at most _GAP records apart become one stretch:
            # reading a few unwanted records is cheaper than reading many small stretches.
            of = np.searchsorted(self._bounds[1:], start[at], side="right")
            places_ = offsets[at]
            begins = np.append(True, (of[1:] != of[:-1]) | (places_[1:] - places_[:-1] > _GAP * size))
            ends = np.append(begins[1:], True)
            runs.append((of[begins], places_[begins], (places_[ends] - places_[begins]) // size + 1))
        nothing = np.empty(0, np.int64)
        of, offsets, counts = (
            (np.concatenate([nothing, *columns]) for columns in zip(*runs, strict=True))
            if runs
            else (nothing,) * 3
        )
        order = np.argsort(of, kind="stable")
        edges = np.searchsorted(of[order], np.arange(len(self._bounds) + 1))
        return offsets[order], counts[order], edges


def _taken(records: npt.NDArray[Any], order: Int64Array) -> npt.NDArray[Any]:
    """Return records in another order: by words, for NumPy copies structures field by field."""
    words = records.view("<u8").reshape(len(records), records.dtype.itemsize // 8)
    return np.take(words, order, axis=0).view(records.dtype).reshape(-1)


def _in_order(order: Int64Array, start: Int64Array, end: Int64Array) -> Int64Array:
    """Return the numbers of records in order of start.

    What is around another one comes first where both begin at once.
    """
    begin = start[order]
    if (begin[1:] < begin[:-1]).any():
        order = order[np.argsort(begin, kind="stable")]
        begin = start[order]
    # tied[i] says that row i starts with row i - 1. A row belongs to a group of equal starts if it
    # is tied to its predecessor or its successor; only those few rows are sorted by end.
    tied = np.zeros(len(begin) + 1, bool)
    tied[1:-1] = begin[1:] == begin[:-1]
    tied = np.flatnonzero(tied[1:] | tied[:-1])
    order[tied] = order[tied[np.lexsort((-end[order[tied]], begin[tied]))]]
    return order


def _first_of(tid: Int64Array, start: Int64Array, first: dict[int, int]) -> None:
    """Note when each thread was first seen."""
    if (tid == tid[0]).all():
        met = [(int(tid[0]), int(start.min()))]
    else:
        order = np.lexsort((start, tid))
        used, places_ = np.unique(tid[order], return_index=True)
        met = list(zip(used.tolist(), start[order][places_].tolist(), strict=True))
    for one, begin in met:
        first[one] = min(first.get(one, begin), begin)


def _bounds(samples: Int64Array, slices: int) -> Int64Array:
    """Return the begins of `count` slices of time with about the same number of rows."""
    if slices <= 1:
        return np.zeros(1, np.int64)
    samples.sort()
    return np.unique(np.append(0, samples[len(samples) * np.arange(1, slices) // slices]))
