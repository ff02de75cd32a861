"""Time in which SMs stood still because some roles waited while others worked.

It is the most that a faster producer could win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.analysis.intervals import union
from warplens.analysis.intrakernel.together import States
from warplens.arrays import BoolArray

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches, Units
    from warplens.arrays import Int64Array

_WIDTH = 1 << 32  # numbers of SMs are small


class Starving:
    """Collects stretches in which a role of `waiting` waits while one of `working` works.

    `role_times` shows it what it finds.
    """

    def __init__(self, units: Units, working: set[int], waiting: set[int]) -> None:
        self._units, self._working, self._waiting = units, working, waiting
        self._parts: list[tuple[Int64Array, Int64Array, Int64Array]] = []

    def see(
        self, states: States, rows: Int64Array, works: BoolArray, waits: BoolArray, roles: Int64Array
    ) -> None:
        """Take the stretches of states.

        `rows`: of these states; `works`, `waits`: which of `roles` do, a row for each of `rows`.
        """
        busy = works[:, [role in self._working for role in roles.tolist()]].any(axis=1)
        idle = waits[:, [role in self._waiting for role in roles.tolist()]].any(axis=1)
        if states.stretches is None or not (busy & idle).any():
            return
        chosen = np.zeros(len(states.group), bool)
        chosen[rows[busy & idle]] = True
        unit, start, length, state = states.stretches
        some = np.flatnonzero(chosen[state])
        unit, start = unit[some], start[some]
        key = self._units.launch[unit] * _WIDTH + self._units.sm[unit]
        self._parts.append((key, start, start + length[some]))

    def by_launch(
        self, launches: IntrakernelLaunches
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return for each launch how long its SMs stood still, ns: the longest one, and the average of all."""
        keys = np.unique(self._units.launch * _WIDTH + self._units.sm)
        most, sums = np.zeros(len(launches)), np.zeros(len(launches))
        starved = np.zeros(len(keys), np.int64)
        if self._parts:
            key, start, end = (np.concatenate([part[column] for part in self._parts]) for column in range(3))
            place = np.searchsorted(keys, key)
            launch = keys // _WIDTH
            # Each (launch, SM) gets a separate stretch of one line, from `base` on, with a gap between: one union serves all of them, and
            # the place of a piece on the line says to which SM it belongs.
            spans = (launches.end - launches.start)[launch] + 2
            base = np.cumsum(spans) - spans
            shift = base[place] - launches.start[launch[place]]
            first, last = (
                np.clip(times, launches.start[launch[place]], launches.end[launch[place]])
                for times in (start, end)
            )
            first, last = union(first + shift, last + shift)
            np.add.at(starved, np.searchsorted(base, first, "right") - 1, last - first)
        of = keys // _WIDTH
        np.maximum.at(most, of, starved)
        np.add.at(sums, of, starved)
        return most, sums / np.maximum(np.bincount(of, minlength=len(launches)), 1)
