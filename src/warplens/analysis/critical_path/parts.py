"""Collects points and edges of a dependency graph.

Each edge has a kind and the operation that it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warplens.arrays import Int64Array

# What an edge stands for.
KINDS = (
    "CPU",
    "CUDA API",
    "GPU",
    "launch latency",
    "stream order",
    "event",
    "sync",
    "queue",
    "collective",
    "begin",
    "end",
)
CPU, CALL, WORK, LAUNCH, ORDER, EVENT, SYNC, QUEUE, COLLECTIVE, BEGIN, END = range(len(KINDS))


@dataclass
class GraphBuilder:
    """Collects points and edges.

    An edge belongs to a thing: a thread, call or operation, by its number.
    """

    observed: list[Int64Array] = field(default_factory=list)
    edges: dict[str, list[Int64Array]] = field(
        default_factory=lambda: {name: [] for name in ("start", "end", "weight", "kind", "thing")}
    )
    points: int = 0

    def add_points(self, observed: Int64Array) -> Int64Array:
        """Add points with the times they were seen at (dag.UNKNOWN: none).

        Returns their numbers.
        """
        first = self.points
        self.observed.append(observed)
        self.points += len(observed)
        return np.arange(first, self.points)

    def add_edges(
        self, start: Int64Array, end: Int64Array, weight: Int64Array | int, kind: int, thing: Int64Array | int
    ) -> None:
        """Add edges; numbers that are the same for all may be given once."""
        for name, values in (
            ("start", start),
            ("end", end),
            ("weight", weight),
            ("kind", kind),
            ("thing", thing),
        ):
            self.edges[name].append(np.broadcast_to(np.asarray(values, np.int64), (len(start),)))

    def time(self) -> Int64Array:
        """Return the times of all points so far."""
        return np.concatenate([np.empty(0, np.int64), *self.observed])

    def finish(self) -> tuple[Int64Array, dict[str, Int64Array]]:
        """Return the points' times and the columns of the edges."""
        return self.time(), {
            name: np.concatenate([np.empty(0, np.int64), *values]) for name, values in self.edges.items()
        }
