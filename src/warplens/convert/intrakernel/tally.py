"""Sums over the buffers of all launches of a process, launch by launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.intrakernel.launches import Launches


@dataclass
class Tally:
    """Sums over the buffers of all launches, one place for each launch."""

    mode: list[str | None]
    clock: list[str | None]
    units: Int64Array
    events: Int64Array
    dropped: Int64Array
    unended: Int64Array
    needed: Int64Array
    sampled: Int64Array
    wanted: Int64Array  # slices that its warps requested, where there were fewer
    surplus: int = 0  # events beyond those that were requested
    garbled: int = 0
    broken: int = 0  # pieces that are no buffers

    @classmethod
    def of(cls, count: int) -> Tally:
        """Return sums of 0 for a number of launches."""

        def zeros() -> Int64Array:
            return np.zeros(count, np.int64)

        return cls(
            [None] * count,
            [None] * count,
            zeros(),
            events=zeros(),
            dropped=zeros(),
            unended=zeros(),
            needed=zeros(),
            sampled=zeros(),
            wanted=zeros(),
        )

    def units_lost(self, launches: Launches) -> Int64Array:
        """Return how many warps of each launch found no slice."""
        wanted = np.maximum(launches.of_read("claimed"), self.wanted)
        return np.asarray(np.maximum(wanted - launches.of_read("room"), 0))
