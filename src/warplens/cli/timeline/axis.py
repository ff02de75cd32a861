"""The time axis: places and labels of ticks."""

from __future__ import annotations

from dataclasses import dataclass

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


@dataclass(frozen=True)
class Tick:
    """A tick in a column."""

    column: int
    label: str


def ticks(begin: int, end: int, columns: int, apart: int = 12) -> list[Tick]:
    """Return ticks at round times, at least `apart` columns from one another.

    Round: 1, 2 or 5 times a power of ten.
    """
    least = (end - begin) * apart / columns
    step = 1
    for exponent in range(20):
        for factor in (1, 2, 5):
            step = factor * 10**exponent
            if step >= least:
                break
        if step >= least:
            break
    first = -(-begin // step) * step
    times = range(first, end, step)
    return [Tick((time - begin) * columns // (end - begin), clock(time, step)) for time in times]


def clock(time: int, step: int) -> str:
    """Write a time with as many digits as a step of `step` ns needs."""
    if time == 0:
        return "0"
    scale, unit = next((scale, unit) for scale, unit in _UNITS if abs(time) >= scale or scale == 1)
    places = 0
    while step < scale // 10**places and (step * 10**places) % scale:
        places += 1
    return f"{time / scale:.{places}f} {unit}"


def length(ns: float) -> str:
    """Write a duration with three digits."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if abs(ns) >= scale), (1, "ns"))
    return f"{ns / scale:.3g} {unit}"
