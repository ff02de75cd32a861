"""Longest paths through points in time, by the native library."""

from __future__ import annotations

import numpy as np

from warplens import native
from warplens.arrays import Int64Array
from warplens.errors import ReportError

UNKNOWN = np.iinfo(np.int64).min


class Dag:
    """Points in time and edges between them: `to` comes at least `weight` ns after `from`.

    `observed`: when each point was seen, UNKNOWN for the latest time that an edge asks for. `time`: of each point; `delay`: what it
    came later than its edges ask for, which it keeps when weights change; `binding`: the edge that decides, -1 without one; `dead`: how
    many edges asked for more than was observed, and are left out. Raises ReportError for a graph with a circle.
    """

    def __init__(self, start: Int64Array, end: Int64Array, weight: Int64Array, observed: Int64Array) -> None:
        self._from, self._to, self._weight, self._observed = (
            _plain(values) for values in (start, end, weight, observed)
        )
        points = len(observed)
        self._graph = native.make("critical_new", self._from, self._to, points)
        if native.call("critical_sorted", self._graph) != points:
            raise ReportError(
                "the dependency graph has a cycle: timestamps in this report contradict each other"
            )
        self.time, self.delay, self.binding = (np.empty(points, np.int64) for _ in range(3))
        self.dead = 0
        self.observe(self._weight)

    def observe(self, weight: Int64Array) -> None:
        """Work out times, delays and what binds, with these weights from now on."""
        self._weight = _plain(weight)
        out = self.time, self.delay, self.binding
        self.dead = int(native.call("critical_observe", self._graph, self._weight, self._observed, *out))

    def times(self, weight: Int64Array) -> Int64Array:
        """Return when each point comes if edges have other weights."""
        weight, times = _plain(weight), np.empty_like(self.time)
        native.call("critical_times", self._graph, weight, self.delay, self.time, times)
        return times

    def latest(self, last: int) -> Int64Array:
        """Return how late each point may come so that no point comes after `last`."""
        latest = np.empty_like(self.time)
        native.call("critical_latest", self._graph, self._weight, self.delay, last, latest)
        return latest


def _plain(values: Int64Array) -> Int64Array:
    return np.ascontiguousarray(values, np.int64)
