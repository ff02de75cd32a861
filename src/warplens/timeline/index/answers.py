"""Answers of an index: rectangles of a view, slices, sums over a time.

Times are ns on the report's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warplens.arrays import Float64Array, Int64Array

Numbers = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Viewport:
    """Rectangles as columns; those of a lane follow one another, in order of time.

    `runs`: track, lane, first rectangle and how many, for each lane that has some. A rectangle holds `slices` whole slices from `start` on;
    `name`, `row` and `link` are of the longest of them, `busy` is the share of `duration` in which one of them ran. Where two neighbours
    together are narrower than `grain`, they are one. Slices that reach out of the view have their whole length.
    """

    begin: int
    end: int
    grain: int
    runs: Numbers
    start: Int64Array
    duration: Int64Array
    name: Numbers
    row: Numbers
    slices: Numbers
    busy: npt.NDArray[np.float32]
    link: Numbers


class Hit(NamedTuple):
    """One slice; `name` is its number in the index's names, `row` the low half of its id."""

    track: int
    lane: int
    start: int
    duration: int
    name: int
    row: int
    link: int


@dataclass(frozen=True)
class Sums:
    """For each name: how many slices overlap a time, and their time in it: sum, and longest (ns)."""

    count: Int64Array
    total: Int64Array
    longest: Int64Array


@dataclass(frozen=True)
class Cells:
    """The group of names with most of the time, for each column of a row.

    In order of column, only those that hold something.

    `busy`: share of the column's time (0 to 1), slices that are there at once counted each; `covered`: counted once. `number`: slices that
    touch it; `begun`: slices of the group that begin in it; `group`: its number; `row`, `name`, `track`, `start`: of the group's longest
    slice there.
    """

    column: Numbers
    busy: Float64Array
    covered: Float64Array
    number: Int64Array
    begun: Int64Array
    group: Numbers
    row: Numbers
    name: Numbers
    track: Numbers
    start: Int64Array
