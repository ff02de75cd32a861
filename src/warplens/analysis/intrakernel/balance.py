"""Balance of blocks (CTAs) over SMs: waves, the tail in which SMs have no more work, and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.analysis.intervals import union
from warplens.arrays import Float64Array

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches, Units
    from warplens.arrays import Int64Array


@dataclass(frozen=True, eq=False)
class Ctas:
    """Blocks, launch by launch.

    Place of the launch, SM where the first warp began, first begin and last end of the warps.
    """

    launch: Int64Array
    sm: Int64Array
    start: Int64Array
    end: Int64Array


@dataclass(frozen=True, eq=False)
class Balance:
    """Of each launch (those without units have zeros). Times are ns.

    ctas, sms: how many ran, on how many SMs. resident: most that one SM had at once. span: from the first begin to the last end.
    cta_mean, cta_most: length of a block. busy_mean, busy_most: time in which an SM had any block. tail: from when the first SM had no
    more to do up to the end. lost: how long SMs had no more to do, on average: what an even finish would win. whole: all blocks were
    recorded; else waves and what is lost are not known.
    """

    ctas: Int64Array
    sms: Int64Array
    resident: Int64Array
    span: Int64Array
    cta_mean: Float64Array
    cta_most: Int64Array
    busy_mean: Float64Array
    busy_most: Int64Array
    tail: Int64Array
    lost: Float64Array
    whole: npt.NDArray[np.bool_]

    @property
    def capacity(self) -> Int64Array:
        """Blocks that fit onto the SMs at once."""
        return np.asarray(np.maximum(self.sms * self.resident, 1), np.int64)

    @property
    def waves(self) -> Float64Array:
        """Number of waves; 2.25: the third wave was a quarter full."""
        return np.asarray(self.ctas / self.capacity, np.float64)

    @property
    def last(self) -> Int64Array:
        """Blocks in the last wave."""
        return np.asarray(
            self.ctas - (np.maximum(-(-self.ctas // self.capacity), 1) - 1) * self.capacity, np.int64
        )

    @property
    def by_wave(self) -> Float64Array:
        """Return the part of `lost` from a last wave with fewer blocks than SMs.

        SMs without one wait for as long as a block lasts.
        """
        empty = 1.0 - np.minimum(self.last, self.sms) / np.maximum(self.sms, 1)
        return np.where(self.ctas > self.capacity, np.minimum(self.lost, empty * self.cta_mean), 0.0)

    @property
    def by_length(self) -> Float64Array:
        """The rest of `lost`: some blocks, or SMs, had more to do than others."""
        return np.asarray(self.lost - self.by_wave, np.float64)


def ctas(units: Units) -> Ctas:
    """Return the blocks that warps belong to."""
    # Warps of one block stand together, so each block is a stretch [first[i], first[i + 1]). It
    # lasts from its first warp's start to its last warp's end.
    order = np.lexsort((units.id, units.cta, units.launch))
    launch, cta = units.launch[order], units.cta[order]
    first = _edges(launch, cta)
    if not len(first):
        return Ctas(*(np.zeros(0, np.int64) for _ in range(4)))
    start, end = np.minimum.reduceat(units.start[order], first), np.maximum.reduceat(units.end[order], first)
    return Ctas(launch[first], units.sm[order][first], start=start, end=end)


def balance(launches: IntrakernelLaunches, blocks: Ctas) -> Balance:
    """Return how evenly each launch ran."""
    number = len(launches)
    empty = Balance(*(np.zeros(number, kind) for kind in "qqqqdqdqqd?"))
    if not len(blocks.launch):
        return empty
    # Rows by launch, then SM, then start: `by_launch` and `by_sm` hold the first row of each, as `reduceat` takes them.
    order = np.lexsort((blocks.start, blocks.sm, blocks.launch))
    launch, sm, start, end = (
        values[order] for values in (blocks.launch, blocks.sm, blocks.start, blocks.end)
    )
    by_launch = _edges(launch)
    mine = launch[by_launch]
    begin, finish = np.zeros(number, np.int64), np.zeros(number, np.int64)
    begin[mine], finish[mine] = np.minimum.reduceat(start, by_launch), np.maximum.reduceat(end, by_launch)
    by_sm = _edges(launch, sm)
    of = launch[by_sm]  # of each SM of each launch
    done = np.maximum.reduceat(end, by_sm)
    sms = np.bincount(of, minlength=number)
    count = np.bincount(launch, minlength=number)
    busy = _busy(launch, by_sm, start=start, end=end, begin=begin, finish=finish)
    idle = finish[of] - done
    counts = np.maximum(count, 1), np.maximum(sms, 1)
    return Balance(
        ctas=count,
        sms=sms,
        resident=_most(_resident(by_sm, start, end), of, number),
        span=finish - begin,
        cta_mean=np.bincount(launch, (end - start).astype(np.float64), number) / counts[0],
        cta_most=_most(end - start, launch, number),
        busy_mean=np.bincount(of, busy.astype(np.float64), number) / counts[1],
        busy_most=_most(busy, of, number),
        tail=_most(idle, of, number),
        lost=np.bincount(of, idle.astype(np.float64), number) / counts[1],
        whole=(launches.sample_blocks == 1) & (launches.units_lost == 0) & (count > 0),
    )


def _busy(
    launch: Int64Array,
    by_sm: Int64Array,
    start: Int64Array,
    end: Int64Array,
    begin: Int64Array,
    finish: Int64Array,
) -> Int64Array:
    """Return how long each SM of each launch had any block.

    All launches laid one behind the other, so that one union does.
    """
    # SM k of launch l occupies [base, base + span) on one line; the + 1 keeps neighbours from touching, which would join them.
    spans = (finish - begin)[launch[by_sm]] + 1
    base = np.cumsum(spans) - spans
    which = np.repeat(np.arange(len(by_sm)), np.diff(np.append(by_sm, len(launch))))
    shift = base[which] - begin[launch]
    first, last = union(start + shift, end + shift)
    return np.bincount(
        np.searchsorted(base, first, "right") - 1, (last - first).astype(np.float64), len(base)
    ).astype(np.int64)


def _resident(by_sm: Int64Array, start: Int64Array, end: Int64Array) -> Int64Array:
    """Return the most blocks that each SM of each launch had at once."""
    which = np.repeat(np.arange(len(by_sm)), np.diff(np.append(by_sm, len(start))))
    # +1 at the start of a block, -1 at its end; the running sum is the number of resident blocks. Each SM ends with 0, so one sum serves
    # all SMs. Ends sort before begins at the same time (-1 < 1): blocks that only touch are not resident together.
    step = np.concatenate((np.ones(len(start), np.int64), -np.ones(len(end), np.int64)))
    lasts = np.maximum(end, start + 1)
    order = np.lexsort((step, np.concatenate((start, lasts)), np.concatenate((which, which))))
    at_once = np.cumsum(step[order])  # each SM ends with none
    return np.maximum.reduceat(at_once, 2 * by_sm)


def _most(values: Int64Array, where: Int64Array, number: int) -> Int64Array:
    most = np.zeros(number, np.int64)
    np.maximum.at(most, where, values)
    return most


def _edges(*keys: Int64Array) -> Int64Array:
    """Return where a new combination of keys begins, in rows that are sorted by them."""
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    new = np.zeros(len(keys[0]), bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)
