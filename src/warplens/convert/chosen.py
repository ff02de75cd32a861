"""Chooses the records that the windows of a capture let into the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array

LATEST = 1 << 62


class Spans:
    """Times that count: begin and end in ns on the spool's clock; None: all do."""

    def __init__(self, spans: Sequence[tuple[int, int]] | None) -> None:
        self.all = spans is None
        ordered = sorted(spans or ())
        self._begins = np.array([begin for begin, _ in ordered], np.int64)
        self._ends = np.maximum.accumulate(np.array([end for _, end in ordered], np.int64))

    def overlap(self, start: Int64Array, end: Int64Array) -> npt.NDArray[np.bool_]:
        """Say which of these times have something in common with a span."""
        if self.all:
            return np.ones(len(start), bool)
        place = np.searchsorted(self._begins, np.maximum(end, start + 1), side="left") - 1
        return self._end(place) > start

    def place(self, time: Int64Array) -> Int64Array:
        """Return the number of the span that each time lies in, -1 for none."""
        if self.all:
            return np.zeros(len(time), np.int64)
        place = np.searchsorted(self._begins, time, side="right") - 1
        return np.where(self._end(place) > time, place, -1)

    def end(self, place: Int64Array) -> Int64Array:
        """Return when spans end; 0 for the number -1."""
        return np.full(len(place), LATEST, np.int64) if self.all else self._end(place)

    def _end(self, place: Int64Array) -> Int64Array:
        return np.append(self._ends, 0)[place]  # the last one is that of -1


def sane(start: Int64Array, end: Int64Array | None = None) -> npt.NDArray[np.bool_]:
    """Say which times can be true."""
    good = (start > 0) & (start <= LATEST)
    return good if end is None else good & (end >= start) & (end <= LATEST)
