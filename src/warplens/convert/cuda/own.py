"""Calls of the agent itself, to read buffers of kernels that time themselves.

They are no work of the program.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.spool.wide import WideRecords


class OwnCalls:
    """When the agent was at it, thread by thread."""

    def __init__(self, reads: WideRecords) -> None:
        begin, end, tid = (reads.column(name) for name in ("asked", "end", "tid"))
        order = np.lexsort((begin, tid))
        self._begin, self._end, self._tid = begin[order], end[order], tid[order]

    def holds(self, tid: Int64Array, start: Int64Array, end: Int64Array) -> npt.NDArray[np.bool_]:
        """Say which calls lie in such a time."""
        out = np.zeros(len(tid), bool)
        for thread in np.unique(self._tid).tolist():
            mine = np.flatnonzero(tid == thread)
            first, last = np.searchsorted(self._tid, [thread, thread + 1])
            begins, ends = self._begin[first:last], self._end[first:last]
            # The times of a thread do not overlap, so only the last that began before a call can
            # contain it. Index -1 reads the appended 0, which `place >= 0` drops.
            place = np.searchsorted(begins, start[mine], side="right") - 1
            out[mine] = (place >= 0) & (np.append(ends, 0)[place] >= end[mine])
        return out


def own_calls(wide: Mapping[str, WideRecords]) -> OwnCalls | None:
    """Return those of a spool; None if there are none."""
    reads = wide.get("intrakernel_read")
    return OwnCalls(reads) if reads is not None else None
