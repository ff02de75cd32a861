"""Interval algebra on NumPy arrays: unions and gaps of half-open intervals [start, end). The native library computes them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warplens import native
from warplens.arrays import Int64Array


def union(start: npt.ArrayLike, end: npt.ArrayLike) -> tuple[Int64Array, Int64Array]:
    """Return the union as disjoint intervals sorted by start.

    Touching ones are joined, empty ones vanish. Any order goes in.
    """
    first, last = _times(start), _times(end)
    if len(first) != len(last):
        raise ValueError(f"{len(first)} starts but {len(last)} ends")
    if len(first) > 1 and np.any(first[1:] < first[:-1]):
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    return native.unite(first, last)


def covered(start: npt.ArrayLike, end: npt.ArrayLike) -> int:
    """Return the length of the union, ns: time counts once however many intervals cover it."""
    first, last = union(start, end)
    return int((last - first).sum())


def gaps(start: npt.ArrayLike, end: npt.ArrayLike, begin: int, finish: int) -> tuple[Int64Array, Int64Array]:
    """Return what of [begin, finish) no interval covers, sorted."""
    if finish <= begin:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, last = union(start, end)
    inside = (last > begin) & (first < finish)
    first, last = np.clip(first[inside], begin, finish), np.clip(last[inside], begin, finish)
    # Gaps lie between the end of one interval and the start of the next: [2, 4) and [6, 7) in [0, 9) leave (0, 2), (4, 6), (7, 9).
    starts, ends = np.concatenate(([begin], last)), np.concatenate((first, [finish]))
    some = ends > starts
    return starts[some].astype(np.int64), ends[some].astype(np.int64)


def intersection(
    start: Int64Array, end: Int64Array, other_start: Int64Array, other_end: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the sorted intersection of two unions.

    Unions are disjoint intervals, sorted, as `union` returns them.
    """
    # The intervals of `other` that touch mine are a run of rows, [first, behind): those that end after my start and begin before my end.
    # `mine` and `theirs` list all such pairs; for first = [0, 1], number = [2, 1] they are mine = [0, 0, 1], theirs = [0, 1, 1].
    first = np.searchsorted(other_end, start, "right")
    behind = np.searchsorted(other_start, end, "left")
    number = np.maximum(behind - first, 0)
    mine = np.repeat(np.arange(len(start)), number)
    theirs = np.arange(len(mine)) - np.repeat(np.cumsum(number) - number - first, number)
    return np.maximum(start[mine], other_start[theirs]), np.minimum(end[mine], other_end[theirs])


class Cover:
    """A union of intervals that says how much of it lies within others, each answer in a few steps."""

    def __init__(self, start: npt.ArrayLike, end: npt.ArrayLike) -> None:
        self.start, self.end = union(start, end)
        self._sums = np.concatenate(([0], np.cumsum(self.end - self.start)))

    @property
    def total(self) -> int:
        """Length of the union, ns."""
        return int(self._sums[-1])

    def before(self, times: Int64Array) -> Int64Array:
        """Return how much of the union lies before each time, ns."""
        # Whole intervals that begin by then, less the portion of the last one that lies behind the time:
        # of [0, 10) and [20, 30), 25 has 10 + 10 - 5 = 15 before it.
        index = np.searchsorted(self.start, times, "right")
        last = np.append(self.end, np.iinfo(np.int64).min)[
            index - 1
        ]  # of the interval that begins last; none: behind the others
        over = np.where(index > 0, np.maximum(last - times, 0), 0)
        return np.asarray(self._sums[index] - over, np.int64)

    def within(self, begin: Int64Array, end: Int64Array) -> Int64Array:
        """Return how much of the union lies in each [begin, end), ns; 0 if the end comes first."""
        return self.before(np.maximum(begin, end)) - self.before(begin)

    def both(self, other: Cover) -> Cover:
        """Return what lies in both."""
        return Cover(*intersection(self.start, self.end, other.start, other_end=other.end))

    def without(self, other: Cover) -> Cover:
        """Return what of this one the other does not cover."""
        # Without [3, 4) and [6, 7), [2, 9) begins at 2, 4, 7 and ends at 3, 6, 9: each in order, begins and ends are pairs.
        first, last = intersection(self.start, self.end, other.start, other_end=other.end)
        return Cover(np.sort(np.concatenate((self.start, last))), np.sort(np.concatenate((first, self.end))))


def _times(values: npt.ArrayLike) -> Int64Array:
    return np.ascontiguousarray(values, np.int64)
