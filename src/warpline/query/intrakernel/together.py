"""What goes on at the same time in a block (CTA): how long pairs of tags, or roles, do, and which role the others wait for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from warpline.query.intrakernel.blocks import Piece
    from warpline.query.intrakernel.launches import Numbers

Active = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Moments:
    """Stretches in which nothing changes in a block: `unit` (any of the block), begin, length, and a column for each key: is it active."""

    unit: Numbers
    start: Numbers
    length: Numbers
    active: Active


def moments(piece: Piece, key: Numbers, number: int) -> Moments:
    """Return the stretches of a piece. `key`: what each region is, from 0 to `number` - 1; -1: it does not count."""
    some = np.flatnonzero((key >= 0) & (piece.start < piece.end))
    cta, unit, key = piece.cta[some], piece.unit[some], key[some]
    if not len(some):
        nothing = np.zeros(0, np.int64)
        return Moments(nothing, nothing, nothing, np.zeros((0, number), bool))
    time = np.concatenate((piece.start[some], piece.end[some]))
    block, of = np.concatenate((cta, cta)), np.concatenate((unit, unit))
    order = np.argsort(_behind(time, block))
    time, block, of = time[order], block[order], of[order]
    active = np.zeros((len(time), number), bool)
    step = np.concatenate((np.ones(len(some), np.int32), -np.ones(len(some), np.int32)))[order]
    what = np.concatenate((key, key))[order]
    for column in np.unique(key).tolist():  # all of a block end in it, so that sums begin anew with each
        active[:, column] = np.cumsum(np.where(what == column, step, 0)) > 0
    length = np.append(np.where(block[1:] == block[:-1], time[1:] - time[:-1], 0), 0)
    kept = np.flatnonzero(length > 0)
    return Moments(of[kept], time[kept], length[kept], active[kept])


def _behind(time: Numbers, block: Numbers) -> Numbers:
    """Return times in which all of a block comes before all of the next: one number sorts faster than two."""
    number = int(block.max()) + 1
    first, last = np.full(number, np.iinfo(np.int64).max), np.full(number, np.iinfo(np.int64).min)
    half = len(time) // 2  # begins, then ends; blocks rise in both
    new = np.flatnonzero(np.diff(block[:half], prepend=-1))
    first[block[new]], last[block[new]] = np.minimum.reduceat(time[:half], new), np.maximum.reduceat(time[half:], new)
    spans = np.where(last >= first, last - first + 1, 0)
    base = np.cumsum(spans) - spans
    return np.asarray(time + (base - first)[block], np.int64)


def pairs(found: Moments, group: Numbers, groups: int) -> npt.NDArray[np.float64]:
    """Return for each group (`group`: of each stretch) a square: ns in which two keys were active; a key with itself: it was."""
    number = found.active.shape[1]
    sums = np.zeros((groups, number, number))
    for one in np.unique(group).tolist():
        some = found.active[group == one].astype(np.float64)
        sums[one] += (some * found.length[group == one][:, None]).T @ some
    return sums


def awaited(found: Moments, roles: int) -> tuple[Active, Active]:
    """Return which roles work and which wait, at each stretch; keys are 2 * role, and that + 1 for its waiting.

    A role of several warps waits where none of them works.
    """
    works = found.active[:, 0 : 2 * roles : 2]
    return works, found.active[:, 1 : 2 * roles : 2] & ~works


def stretches(found: Moments, chosen: Active) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Yield unit, begin and end of the stretches that are chosen."""
    some = np.flatnonzero(chosen)
    if len(some):
        yield found.unit[some], found.start[some], found.start[some] + found.length[some]
