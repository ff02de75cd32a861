"""Interval algebra on NumPy arrays: unions and gaps of half-open intervals [start, end), computed by the native library."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpline.spool import desk

Times = npt.NDArray[np.int64]


def union(start: npt.ArrayLike, end: npt.ArrayLike) -> tuple[Times, Times]:
    """Return the union as disjoint intervals sorted by start; touching ones are joined, empty ones vanish. Any order goes in."""
    first, last = _times(start), _times(end)
    if len(first) != len(last):
        raise ValueError(f"{len(first)} starts but {len(last)} ends")
    if len(first) > 1 and np.any(first[1:] < first[:-1]):
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    return desk.unite(first, last)


def covered(start: npt.ArrayLike, end: npt.ArrayLike) -> int:
    """Return the length of the union, ns: time counts once however many intervals cover it."""
    first, last = union(start, end)
    return int((last - first).sum())


def gaps(start: npt.ArrayLike, end: npt.ArrayLike, begin: int, finish: int) -> tuple[Times, Times]:
    """Return what of [begin, finish) no interval covers, sorted."""
    if finish <= begin:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, last = union(start, end)
    inside = (last > begin) & (first < finish)
    first, last = np.clip(first[inside], begin, finish), np.clip(last[inside], begin, finish)
    starts, ends = np.concatenate(([begin], last)), np.concatenate((first, [finish]))
    some = ends > starts
    return starts[some].astype(np.int64), ends[some].astype(np.int64)


def _times(values: npt.ArrayLike) -> Times:
    return np.ascontiguousarray(values, np.int64)
