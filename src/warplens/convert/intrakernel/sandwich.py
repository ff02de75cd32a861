"""Converts the clock of a GPU to the report's.

A launch lies between two times of the report, so the offset lies between two bounds.

Bounds of many launches are intersected, launches that contradict the others are left out, and a drift is fitted where they are far enough
apart to show one. All times are ns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warplens.arrays import Float64Array, Int64Array

NOISE = 200.0  # by which bounds may be wrong: CUPTI works times of the GPU out between readings of two clocks
_WINDOW = 1_000_000_000  # bounds so far apart are intersected, once the drift is taken out of them
_SEGMENT = 10_000_000_000  # over which the drift is taken for constant
_DRIFT = 50e-6  # of clocks of which nothing is known (one standard deviation)
_DRIFT_CHANGES = 5e-6  # between segments of one capture
_MOST = (
    200  # launches of a window that are looked at, the tightest: of very many, some are as wrong as can be
)
_FAR = 20_000.0  # a launch that lies farther off than this contradicts the others


@dataclass
class Fit:
    """For each launch: report's clock minus the GPU's, its error, the drift, and contradictions.

    Drift in 1e-6.
    """

    offset: Int64Array
    uncertainty: Int64Array
    drift: Float64Array
    odd: npt.NDArray[np.bool_]


def fit(at: Int64Array, low: Int64Array, high: Int64Array) -> Fit:
    """Find the offset of each launch.

    `at`: when it ran, on the GPU's clock; `low`, `high`: bounds of its offset, `low` <= `high` +
    noise.

    The offset of a launch that does not contradict the others lies within its own bounds.
    """
    count = len(at)
    if not count:
        nothing = np.empty(0, np.int64)
        return Fit(nothing, nothing, np.empty(0), odd=np.empty(0, bool))
    zero, begin = int(np.median(low)), int(at.min())
    lower, upper = (low - zero).astype(np.float64), (high - zero).astype(np.float64)
    upper = np.maximum(upper, lower)  # by noise only, says the caller
    time = (at - begin).astype(np.float64)
    offset, uncertainty, drift = np.zeros(count), np.zeros(count), np.zeros(count)
    mean, spread = _slope(time, lower, upper, mean=0.0, spread=_DRIFT)
    segment = (time // _SEGMENT).astype(np.int64)
    for one in np.unique(segment):
        mine = np.flatnonzero(segment == one)
        slope, doubt = _slope(
            time[mine],
            lower[mine],
            upper[mine],
            mean=mean,
            spread=max(spread, _DRIFT_CHANGES) if segment.any() else spread,
        )
        window = (time[mine] // _WINDOW).astype(np.int64)
        for other in np.unique(window):
            some = mine[window == other]
            centre = float(time[some].mean())
            moved = slope * (time[some] - centre)
            first, last = _consensus(lower[some] - moved, upper[some] - moved)
            offset[some] = (first + last) / 2 + moved
            uncertainty[some] = (last - first) / 2 + NOISE + doubt * np.abs(time[some] - centre)
        drift[mine] = slope
    inside = np.clip(offset, lower, upper)
    away = np.abs(inside - offset)
    odd = away > _FAR
    offset = np.where(odd, offset, inside)
    uncertainty += np.where(odd, 0.0, away)
    return Fit(
        np.rint(offset).astype(np.int64) + zero, np.ceil(uncertainty).astype(np.int64), drift * 1e6, odd=odd
    )


def between(at: Int64Array, known: Int64Array, of: Fit) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Return offset, uncertainty and drift at times without bounds, from launches that ran at `known` (rising)."""
    good = np.flatnonzero(~of.odd)
    known = known[good]
    right = np.clip(np.searchsorted(known, at), 1, max(len(known) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(known) - 1)
    nearest = np.where(np.abs(at - known[left]) <= np.abs(at - known[right]), left, right)
    away = (at - known[nearest]).astype(np.float64)
    nearest = good[nearest]
    drift = of.drift[nearest]
    offset = of.offset[nearest] + np.rint(drift * 1e-6 * away).astype(np.int64)
    return offset, of.uncertainty[nearest] + np.ceil(np.abs(away) * _DRIFT).astype(np.int64), drift


def tick(stamps: Int64Array) -> int:
    """Return the resolution of a clock with these readings.

    The greatest number that divides their distances, at most 2048 ns.
    """
    different = np.unique(stamps)
    if len(different) < 8:
        return 32  # too few to tell: that of Hopper and later
    return int(np.clip(np.gcd.reduce(np.diff(different)), 1, 2048))


def _slope(
    time: Float64Array, lower: Float64Array, upper: Float64Array, mean: float, spread: float
) -> tuple[float, float]:
    """Return the drift and its doubt, given what was thought before.

    Few launches close together change little.
    """
    doubt = np.maximum((upper - lower) / 2, NOISE)
    middle = (lower + upper) / 2
    kept = np.ones(len(time), bool)
    slope, sigma = mean, spread
    for _ in range(4):
        weight = np.where(kept, 1 / doubt**2, 0.0)
        total = weight.sum()
        if total <= 0:
            break
        centre, height = float((weight * time).sum() / total), float((weight * middle).sum() / total)
        lever = float((weight * (time - centre) ** 2).sum())
        precision = lever + 1 / spread**2
        slope = (float((weight * (time - centre) * (middle - height)).sum()) + mean / spread**2) / precision
        sigma = precision**-0.5
        rest = middle - height - slope * (time - centre)
        rest -= np.median(rest)
        limit = 4 * np.median(np.abs(rest)) + 2 * doubt
        fresh = np.abs(rest) <= limit
        if (fresh == kept).all():
            break
        kept = fresh
    return slope, sigma


def _consensus(lower: Float64Array, upper: Float64Array) -> tuple[float, float]:
    """Return the bounds that most launches agree on.

    If there are very many, the loosest are left out first.
    """
    if len(lower) > _MOST:
        tight = np.argpartition(upper - lower, _MOST)[:_MOST]
        lower, upper = lower[tight], upper[tight]
    first, last = float(lower.max()), float(upper.min())
    if first <= last:
        return first, last
    # Walk over all bounds: where the most intervals are open at once.
    edges = np.concatenate([lower, upper])
    step = np.concatenate([np.ones(len(lower), np.int64), -np.ones(len(upper), np.int64)])
    order = np.lexsort((-step, edges))
    open_now = np.cumsum(step[order])
    # Begins sort before ends at one place (-step), so intervals that only touch count as open
    # together.
    best = int(open_now.argmax())
    return float(edges[order[best]]), float(edges[order[min(best + 1, len(order) - 1)]])
