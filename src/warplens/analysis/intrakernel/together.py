"""Concurrency within a block (CTA).

How long pairs of tags, or roles, overlap, and which role the others wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens import native
from warplens.arrays import BoolArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warplens.analysis.intrakernel.blocks import RegionChunk
    from warplens.arrays import Int64Array

KEYS = 64


@dataclass(frozen=True, eq=False)
class States:
    """What blocks do, added up over them: group, how long, and a column for each key: is it active.

    stretches: unit (any of the block), start, length and row here of each stretch in which a block did so; None: not asked for.
    """

    group: Int64Array
    length: Int64Array
    active: BoolArray
    stretches: tuple[Int64Array, Int64Array, Int64Array, Int64Array] | None


def states(
    piece: RegionChunk,
    key: Int64Array,
    number: int,
    block: Int64Array,
    group: Int64Array,
    *,
    stretches: bool = False,
) -> States:
    """Return what the blocks of a piece do.

    Args:
        piece: regions of whole blocks.
        key: what each region is, from 0 to `number` - 1, 63 at most; -1: it does not count, but hides what it is in.
        number: how many keys there are.
        block: the block of each unit of the report.
        group: of each unit, what is added up.
        stretches: give the single stretches, too.
    """
    if number > KEYS:
        raise ValueError(f"{number} keys, and there is room for {KEYS}")
    room = 4 * len(piece.unit)
    of, length, several = (np.empty(room, np.int64) for _ in range(3))
    masks = several.view(np.uint64)
    single = [np.empty(room, np.int64) for _ in range(4)] if stretches else []
    long = np.zeros(1, np.uint64)
    rows = [np.ascontiguousarray(values, np.int64) for values in (piece.unit, piece.start, piece.end)]
    what, whole = np.ascontiguousarray(key, np.int32), np.ascontiguousarray(piece.whole, np.uint8)
    of_units = [np.ascontiguousarray(values, np.int64) for values in (block, group)]
    places: Sequence[Int64Array | None] = single if stretches else [None] * 4
    known = native.call("together", *rows, what, whole, *of_units, of, masks, length, *places, long)
    # Each state is a bit mask of active keys: mask 0b101 means keys 0 and 2; the result has a row per state and a column per key.
    active = (masks[:known, None] >> np.arange(number, dtype=np.uint64)) & np.uint64(1) != 0
    count = int(long[0])
    seen = (single[0][:count], single[1][:count], single[2][:count], single[3][:count]) if stretches else None
    return States(of[:known], length[:known], active, stretches=seen)


def pairs(states: States, groups: int) -> npt.NDArray[np.float64]:
    """Return for each group a square: ns in which two keys were active.

    A key with itself: it was.
    """
    number = states.active.shape[1]
    sums = np.zeros((groups, number, number))
    for number_of_group in np.unique(states.group).tolist():
        some = states.active[states.group == number_of_group].astype(np.float64)
        # A matrix product counts pairs: entry (a, b) adds the length of each state in which both a and b are active.
        sums[number_of_group] += (some * states.length[states.group == number_of_group][:, None]).T @ some
    return sums


def awaited(active: BoolArray, roles: int) -> tuple[BoolArray, BoolArray]:
    """Return which roles work and which wait, in each state.

    Keys are 2 * role, and that + 1 for its waiting.

    A role of several warps waits if none of them works.
    """
    # Even columns are a role's work, odd ones its waits.
    works = active[:, 0 : 2 * roles : 2]
    return works, active[:, 1 : 2 * roles : 2] & ~works
