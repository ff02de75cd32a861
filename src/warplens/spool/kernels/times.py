"""Converts cycles of an SM to ns.

Uses each unit's own rate if it ran long enough, else that of the launch.
"""

from __future__ import annotations

import numpy as np

from warplens.spool.kernels.decoded import Array, Decoded

_LONG = 10_000  # ns: below it, the timer's steps make a rate of one unit wrong by more than some tenths of a percent


def ns_per_tick(own: Array, ended: Array, decoded: Decoded) -> Array:
    """Return ns per cycle for each unit.

    Where no unit ended, cycles are taken for ns, and a note says so.
    """
    ns = (own["time_end"] - own["time_begin"]).astype(np.float64)
    cycles = (own["clock_end"] - own["clock_begin"]).astype(np.float64)
    usable = ended & (cycles > 0) & (ns > 0)
    fits = usable & (ns >= _longest_step(own, usable))
    rates = np.divide(ns, cycles, out=np.zeros(len(own)), where=usable)
    if fits.any():
        common = float(np.median(rates[fits]))
    elif usable.any():  # all of them are short: together they are longer
        common = float(ns[usable].sum() / cycles[usable].sum())
        decoded.notes.append(
            "no unit ran long enough to measure the clock's rate, so its error is a few percent"
        )
    else:
        common = 1.0
        decoded.notes.append("no unit tells the clock's rate: times are cycles, not ns")
    return np.where(fits, rates, common)


def _longest_step(own: Array, usable: Array) -> int:
    """The shortest time of a unit that gets a separate rate.

    Ten microseconds, more where the timer moves in large steps.
    """
    times = np.concatenate([own["time_begin"][usable], own["time_end"][usable]])
    step = int(np.gcd.reduce(times)) if len(times) > 8 else 0
    return max(_LONG, 300 * step if step < 1_000_000 else 0)
