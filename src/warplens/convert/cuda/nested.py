"""Finds the driver API calls that a runtime call makes: those within a runtime call of the same thread."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array


def nested(
    driver: npt.NDArray[np.bool_], tid: Int64Array, start: Int64Array, end: Int64Array
) -> npt.NDArray[np.bool_]:
    """Say which calls of the driver lie within one of the runtime.

    They are in order of start; of those that begin at once the longer ones come first, and the runtime's before the driver's.
    """
    is_nested = np.zeros(len(driver), bool)
    mine = np.flatnonzero(np.isin(tid, np.unique(tid[driver])))
    mine = mine[np.argsort(tid[mine], kind="stable")]
    edges = np.flatnonzero(np.diff(tid[mine])) + 1
    for first, last in pairwise([0, *edges.tolist(), len(mine)]):
        rows = mine[first:last]
        inner = driver[rows]
        # The furthest end of the runtime's calls so far. A driver call that begins later and ends
        # by then lies within one of them: runtime [0, 9), driver [2, 5) has 5 <= 9. Driver calls
        # count as -1, so they contain nothing.
        reach = np.maximum.accumulate(np.where(inner, -1, end[rows]))
        is_nested[rows] = inner & (end[rows] <= reach)
    return is_nested
