"""Values over time, against looking at every tick."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from warplens.analysis.step_functions import NOTHING, StepFunction, grouped_union, innermost
from warplens.arrays import Int64Array


def numbers(values: Sequence[int]) -> Int64Array:
    return np.array(values, np.int64)


def columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Int64Array]:
    return [numbers([row[place] for row in rows]) for place in range(width)]


def nest(rng: random.Random, begin: int, end: int, depth: int = 0) -> list[tuple[int, int]]:
    """Random intervals that lie in one another or side by side, outer ones first."""
    found = []
    while begin < end and depth < 4 and rng.random() < 0.8:
        first = rng.randrange(begin, end)
        last = rng.randint(first, end)
        found += [(first, last), *nest(rng, first, last, depth + 1)]
        begin = last
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_innermost_at_every_tick(seed: int) -> None:
    rng = random.Random(seed)
    threads = {key: nest(rng, 0, 60) for key in (5, 9, 2)}
    rows = [(key, *interval) for key, found in threads.items() for interval in found]
    shuffled = rng.sample(rows, len(rows))
    points = [(key, time) for key in (2, 5, 7, 9) for time in range(-2, 63)]
    found = innermost(*columns(shuffled, 3), *columns(points, 2))
    for (key, time), place in zip(points, found.tolist(), strict=True):
        around = [interval for interval in threads.get(key, []) if interval[0] <= time < interval[1]]
        assert (shuffled[place][1:] if place != NOTHING else None) == (around[-1] if around else None)


@pytest.mark.parametrize("seed", range(40))
def test_one_over_the_other(seed: int) -> None:
    rng = random.Random(seed)
    first, second = (sorted(nest(rng, 0, 40)) for _ in range(2))
    (begins, ends), (later_begins, later_ends) = columns(first, 2), columns(second, 2)
    top, below = StepFunction.where(begins, ends, 1), StepFunction.where(later_begins, later_ends, 2)
    found = top.over(below).at(np.arange(-1, 42)).tolist()
    for time, value in zip(range(-1, 42), found, strict=True):
        inside = [any(begin <= time < end for begin, end in rows) for rows in (first, second)]
        assert value == (1 if inside[0] else 2 if inside[1] else NOTHING)


@pytest.mark.parametrize("seed", range(40))
def test_unions_of_groups(seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        (rng.randrange(4), begin, begin + rng.randrange(9))
        for begin in (rng.randrange(-30, 50) for _ in range(rng.randrange(30)))
    ]
    group, start, end = columns(rows, 3)
    expected = [
        len({tick for of, begin, end in rows if of == group for tick in range(begin, end)})
        for group in range(5)
    ]
    assert grouped_union(group, start, end, 5).tolist() == expected
