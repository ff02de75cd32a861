"""Flattens nested intervals into disjoint pieces: at each moment the innermost.

That is the one that began last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warplens import native
from warplens.arrays import Int64Array


def outermost(start: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return row, start and end of the pieces that remain after each interval gives way to earlier rows. All sorted by start."""
    # `reach` is the furthest end so far. [0, 10), [5, 8), [9, 12) become [0, 10), nothing, [10, 12).
    reach = np.maximum.accumulate(end) if len(end) else end
    first = start.copy()
    first[1:] = np.maximum(start[1:], reach[:-1])
    rows = np.flatnonzero(first < end)
    return rows, first[rows], end[rows]


def innermost(start: Int64Array, end: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return row, start and end of the pieces, sorted by start.

    So are the intervals, of those that begin together the longer first.

    Where intervals cross, what began later hides what began before, as long as it lasts.
    """
    kept = np.flatnonzero(start < end)
    first, last = start[kept], end[kept]
    if not len(first):
        return kept, first, last
    # Every interval is cut into the pieces that no child covers. Intervals that cross are first cut
    # so that they nest: then an interval's children are disjoint.
    depth, parent = native.nest(np.zeros(len(first), np.int64), first, last)
    if np.any(crossed := _crossed(first, last, depth, parent=parent)):
        last[crossed] = _cut(first[crossed], last[crossed])
        _, parent = native.nest(np.zeros(len(first), np.int64), first, last)
    # What shows of an interval lies before each of its children, and behind the last one.
    # Children stand side by side in this order, each family by start. A piece of the parent ends where a child begins, and begins at the
    # parent's start or where the child before it ended. [0, 10) around [2, 4) and [6, 7) gives [0, 2), [4, 6) and the tail [7, 10).
    order = np.argsort(parent, kind="stable")
    above = parent[order]
    follows = np.zeros(len(order), bool)
    follows[1:] = above[1:] == above[:-1]
    begin = np.where(above >= 0, first[above], 0)
    begin[1:] = np.where(follows[1:], last[order[:-1]], begin[1:])
    inner = above >= 0
    tail = first.copy()
    final = np.flatnonzero(inner & ~np.append(follows[1:], False))
    tail[above[final]] = last[order[final]]
    rows = np.concatenate((above[inner], np.arange(len(first))))
    starts = np.concatenate((begin[inner], tail))
    ends = np.concatenate((first[order[inner]], last))
    some = np.flatnonzero(starts < ends)
    some = some[np.argsort(starts[some], kind="stable")]
    return kept[rows[some]], starts[some], ends[some]


def _crossed(
    start: Int64Array, end: Int64Array, depth: npt.NDArray[np.int32], parent: Int64Array
) -> npt.NDArray[np.bool_]:
    """Return which intervals belong to an overlapping group with crossing ones.

    Crossing: one ends within another that began in it.
    """
    # How many intervals are open when each begins. In a proper nesting that number is its depth, and its depth is its parent's plus one.
    active = np.arange(len(start)) - np.searchsorted(np.sort(end), start, side="right")
    odd = (depth != np.where(parent >= 0, depth[parent] + 1, 0)) | (active != depth)
    reach = np.maximum.accumulate(end)
    # A heap is a run of intervals without a moment between them in which none is open; one bad interval marks its whole heap.
    heap = np.cumsum(np.append(False, start[1:] >= reach[:-1]))
    some = np.zeros(int(heap[-1]) + 1, bool)
    some[heap[odd]] = True
    return np.asarray(some[heap], bool)


def _cut(start: Int64Array, end: Int64Array) -> Int64Array:
    """Return ends that make them nest: of one that is outlived by another, the start of that."""
    last = end.tolist()
    open_: list[int] = []
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while open_ and last[open_[-1]] <= begin:
            open_.pop()
        while open_ and last[open_[-1]] < finish:
            last[open_.pop()] = begin
        open_.append(row)
    return np.array(last, np.int64)


def outlived(start: Int64Array, end: Int64Array) -> npt.NDArray[np.bool_]:
    """Return which intervals end within another that began in them.

    They come as for `innermost`.
    """
    crossing = np.zeros(len(start), bool)
    kept = np.flatnonzero(start < end)
    first, last = start[kept], end[kept]
    if len(kept):
        crossed = _crossed(first, last, *native.nest(np.zeros(len(first), np.int64), first, last))
        crossing[kept[crossed]] = _cut(first[crossed], last[crossed]) != last[crossed]
    return crossing
