"""Where the nodes of CUDA graphs were captured: the calls that added them, through all copies of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.cuda.calls import Calls
from warplens.spool.wide import WideRecords

_CALLS = 8  # returned calls that are passed over in search of the one around a moment


@dataclass(frozen=True)
class Captured:
    """Nodes in order of CUPTI's number: the call that added each (-1: not recorded), and the string of its open ranges (0: none).

    A copy, as every node of an executable graph is one, has those of the node that it comes from.
    """

    node: Int64Array
    call: Int64Array
    names: Int64Array

    @classmethod
    def of(cls, nodes: WideRecords | None, api: WideRecords | None, calls: Calls) -> Captured | None:
        """Return the nodes of a process; None where there are none."""
        if nodes is None or not len(nodes):
            return None
        node, original, start, tid, names = (
            nodes.column(name) for name in ("node", "original", "start", "tid", "name")
        )
        node, last = np.unique(node[::-1], return_index=True)  # of a number that came twice the later one
        original, start, tid, names = (values[::-1][last].copy() for values in (original, start, tid, names))
        first = _first(node, original)
        call = np.full(len(node), -1, np.int64)
        added = np.flatnonzero(original == 0)
        if api is not None:
            call[added] = calls.find(_around(api, tid[added], start[added]))
        return cls(node, call[first], names[first])

    def find(self, node: npt.NDArray[Any]) -> tuple[Int64Array, Int64Array]:
        """Return the call and the string of each node; -1 and 0 where it is not known, or 0."""
        place = np.minimum(np.searchsorted(self.node, node), len(self.node) - 1)
        known = (self.node[place] == node) & (node != 0)
        return np.where(known, self.call[place], -1), np.where(known, self.names[place], 0)


def _first(node: Int64Array, original: Int64Array) -> Int64Array:
    """Return the place of the node that each node is in the end a copy of: its own place for one that is no copy."""
    place = np.minimum(np.searchsorted(node, original), len(node) - 1)
    own = np.arange(len(node))
    first = np.where((node[place] == original) & (original != 0), place, own)
    for _ in range(len(node)):  # once for each copy of a copy; damaged records may form a circle
        further = first[first]
        if np.array_equal(further, first):
            break
        first = further
    return first


def _around(api: WideRecords, tid: Int64Array, time: Int64Array) -> Int64Array:
    """Return the correlation of the call that each thread was in at each time; 0 for none."""
    threads = api.column("tid")
    used = np.flatnonzero(np.isin(threads, tid))
    start, end, correlation = (api.column(name)[used] for name in ("start", "end", "correlation"))
    threads = threads[used]
    order = np.lexsort((-end, start, threads))
    start, end, correlation, threads = (values[order] for values in (start, end, correlation, threads))
    out = np.zeros(len(tid), np.int64)
    for one in np.unique(tid).tolist():
        low, high = np.searchsorted(threads, [one, one + 1])
        mine = np.flatnonzero(tid == one)
        place = low + np.searchsorted(start[low:high], time[mine], side="right") - 1
        for _ in range(_CALLS):  # a call within it may have returned already
            over = (place >= low) & (np.append(end, 0)[place] < time[mine])
            place[over] -= 1
        inside = (place >= low) & (np.append(end, 0)[place] >= time[mine])
        out[mine[inside]] = correlation[place[inside]]
    return out
