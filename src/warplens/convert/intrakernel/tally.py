"""Sums over the buffers of all launches of a process, launch by launch."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.intrakernel.launches import Launches


@dataclass
class Tally:
    """Sums over the buffers of all launches, one place for each launch."""

    count: InitVar[int]
    mode: list[str | None] = field(init=False)
    clock: list[str | None] = field(init=False)
    units: Int64Array = field(init=False)
    events: Int64Array = field(init=False)
    dropped: Int64Array = field(init=False)
    unended: Int64Array = field(init=False)
    needed: Int64Array = field(init=False)
    sampled: Int64Array = field(init=False)
    wanted: Int64Array = field(init=False)  # slices that its warps requested, where there were fewer
    surplus: int = 0  # events beyond those that were requested
    garbled: int = 0
    broken: int = 0  # pieces that are no buffers

    def __post_init__(self, count: int) -> None:
        self.mode, self.clock = [None] * count, [None] * count
        for name in ("units", "events", "dropped", "unended", "needed", "sampled", "wanted"):
            setattr(self, name, np.zeros(count, np.int64))

    def units_lost(self, launches: Launches) -> Int64Array:
        """Return how many warps of each launch found no slice."""
        wanted = np.maximum(launches.of_read("claimed"), self.wanted)
        return np.asarray(np.maximum(wanted - launches.of_read("room"), 0))
