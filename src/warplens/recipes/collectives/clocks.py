"""Puts the clocks of many hosts beside each other, by collectives that end at once on all ranks.

The clocks of ranks on one host agree: one correction is fitted for each host. It is an offset, and where
that leaves less, an offset and a drift. A correction that does not make the ends agree better is not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplens.arrays import Float64Array, Int64Array

_FOR_DRIFT = 16  # collectives
_BETTER = 0.5  # of the residual before: a correction that leaves more is noise


@dataclass(frozen=True)
class AlignedClocks:
    """`shift`: collectives × ranks, ns that are subtracted from the times of a rank.

    `residual`: ns, how far the ends of a rank still are from those of the others (median), for each rank.
    `before`: the same without a correction.
    """

    shift: Float64Array
    residual: Float64Array
    before: Float64Array

    @property
    def uncertainty(self) -> float | None:
        """Ns that times of different ranks may be apart: of the worst rank; None if nothing shows it."""
        return float(np.nanmax(self.residual)) if np.isfinite(self.residual).any() else None


def aligned(start: Float64Array, end: Float64Array, usable: Int64Array, hosts: list[str]) -> AlignedClocks:
    """Fit the clocks. `start`, `end`: collectives × ranks, NaN if a rank has no part.

    `usable`: the collectives whose ends agree. `hosts`: the clock of each rank.
    """
    shift = np.zeros_like(end)
    late = end[usable] - np.nanmedian(end[usable], axis=1, keepdims=True) if len(usable) else end[:0]
    before = _spread(late)
    for host in dict.fromkeys(hosts):
        own = np.array([one == host for one in hosts])
        apart = late[:, own]
        if not np.isfinite(apart).any():
            continue
        best, left = _offset(apart), _size(apart - _offset(apart))
        correction = np.full(len(end), best)
        if np.isfinite(apart).sum() >= _FOR_DRIFT:
            times = np.nanmedian(end, axis=1)
            slope, base = _line(np.repeat(times[usable][:, None], own.sum(), axis=1), apart)
            drifting = base + slope * times
            size = _size(apart - drifting[usable][:, None])
            if size < _BETTER * left:
                correction, left = drifting, size
        if left < _BETTER * _size(apart):
            shift[:, own] = correction[:, None]
    return AlignedClocks(shift, _spread(late - shift[usable]), before)


def _offset(apart: Float64Array) -> float:
    return float(np.nanmedian(apart))


def _size(apart: Float64Array) -> float:
    return float(np.nanmedian(np.abs(apart)))


def _spread(late: Float64Array) -> Float64Array:
    """Return the median distance of each rank's ends from those of the others; NaN if there is none."""
    result = np.full(late.shape[1], np.nan)
    for rank in range(late.shape[1]):
        own = late[:, rank][np.isfinite(late[:, rank])]
        if len(own):
            result[rank] = np.median(np.abs(own))
    return result


def _line(times: Float64Array, apart: Float64Array) -> tuple[float, float]:
    """Return slope and base of a robust line: medians of the first and the last third."""
    known = np.isfinite(apart) & np.isfinite(times)
    x, y = times[known], apart[known]
    order = np.argsort(x)
    third = max(len(x) // 3, 1)
    first, last = order[:third], order[-third:]
    run = float(np.median(x[last]) - np.median(x[first]))
    slope = float(np.median(y[last]) - np.median(y[first])) / run if run > 0 else 0.0
    return slope, float(np.median(y - slope * x))
