"""Arrows from API calls to the GPU work that they launched.

Of each call one, to the first piece of its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.exporters.tracks import batches, values

if TYPE_CHECKING:
    from warplens.report import Report

_PER_PROCESS = 32  # bits
_MOST = 1 << 28  # calls of a process; arrows of later ones are left out
_KNOWN, _TAKEN = 1, 2


class Arrows:
    """Ask for the ends of all GPU work first, then for the begins.

    Takes a byte of memory for each API call.
    """

    def __init__(self, states: dict[int, npt.NDArray[np.uint8]]) -> None:
        """`states`: _KNOWN at the low half of the id of each call, by process."""
        self._states = states

    @classmethod
    def of(cls, report: Report) -> Arrows:
        """Return those of a report."""
        states: dict[int, npt.NDArray[np.uint8]] = {}
        if any(report.tables[table] for table in ("kernels", "memcpys", "memsets", "graphs")):
            for batch in batches(report, "cuda_api", ("id", "start", "end")):
                for process, _, low in _split(values(batch, "id")):
                    state = states.get(process, np.empty(0, np.uint8))
                    if low.max() >= len(state):
                        state = np.concatenate((state, np.zeros(int(low.max()) + 1 - len(state), np.uint8)))
                    state[low] = _KNOWN
                    states[process] = state
        return cls(states)

    def ends(self, calls: Int64Array) -> Int64Array:
        """Return the call whose arrow ends at each piece of work, -1 if none does.

        `calls`: what started it, -1: not known.
        """
        last = np.full(len(calls), -1, np.int64)
        for process, rows, low in _split(calls):
            state = self._states.get(process)
            if state is None:
                continue
            inside = low < len(state)
            rows, low = rows[inside], low[inside]
            first, where = np.unique(low, return_index=True)
            fresh = state[first] == _KNOWN
            state[first[fresh]] = _TAKEN
            chosen = rows[where[fresh]]
            last[chosen] = calls[chosen]
        return last

    def begins(self, ids: Int64Array) -> Int64Array:
        """Return the ids of calls at which an arrow begins, -1 for the others."""
        first = np.full(len(ids), -1, np.int64)
        for process, rows, low in _split(ids):
            taken = rows[self._states[process][low] == _TAKEN] if process in self._states else rows[:0]
            first[taken] = ids[taken]
        return first


def _split(ids: Int64Array) -> Iterator[tuple[int, Int64Array, Int64Array]]:
    """Yield process, places and numbers within the process of the ids that are known."""
    rows = np.flatnonzero(ids >= 0)
    owner, low = ids[rows] >> _PER_PROCESS, ids[rows] & (1 << _PER_PROCESS) - 1
    for process in np.unique(owner).tolist():
        own = (owner == process) & (low < _MOST)
        if own.any():
            yield process, rows[own], low[own]
