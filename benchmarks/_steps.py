"""Compares the steps of a program inside capture windows with the steps between them."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Sequence

LAG_NS = 15_000_000  # steps so close to an edge are left out
Steps = list[tuple[int, ...]]


def parted(steps: Steps, windows: Sequence[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """Times of steps inside of windows, and between them."""
    inside: list[float] = []
    outside: list[float] = []
    edges = list(itertools.chain.from_iterable(windows))
    for start, end, _, delay, _ in steps:
        before = sum(1 for edge in edges if edge and edge <= start)  # few hundred
        near = any(edge - LAG_NS < end and start < edge + LAG_NS for edge in edges)
        if not near:
            (inside if before % 2 else outside).append(float(end - start - delay))
    return inside, outside


def trimmed(values: Sequence[float]) -> float:
    """Return the mean without the tenth at each end."""
    ordered = sorted(values)
    cut = len(ordered) // 10
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def standard_error(one: Sequence[float], other: Sequence[float]) -> float:
    """Return that of the ratio of their trimmed means, in percent, by drawing again and again."""
    chance = random.Random(1)
    ratios = [
        trimmed(chance.choices(one, k=len(one))) / trimmed(chance.choices(other, k=len(other)))
        for _ in range(40)
    ]
    return 100 * statistics.pstdev(ratios)
