"""Unions and gaps against sets of single points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplens.analysis import intervals

pytestmark = pytest.mark.slow


pairs = st.lists(
    st.tuples(st.integers(-20, 40), st.integers(-3, 15)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    max_size=15,
)


def points(start: list[int], end: list[int]) -> set[int]:
    return {point for first, last in zip(start, end, strict=True) for point in range(first, last)}


@given(pairs)
def test_union(items: list[tuple[int, int]]) -> None:
    start, end = [first for first, _ in items], [last for _, last in items]
    first, last = intervals.union(start, end)
    assert points(first.tolist(), last.tolist()) == points(start, end)
    assert np.all(first < last)
    assert np.all(last[:-1] < first[1:])
    assert intervals.covered(start, end) == len(points(start, end))


@given(pairs, st.integers(-25, 45), st.integers(-25, 60))
def test_gaps(items: list[tuple[int, int]], begin: int, finish: int) -> None:
    start, end = [first for first, _ in items], [last for _, last in items]
    first, last = intervals.gaps(start, end, begin, finish)
    assert points(first.tolist(), last.tolist()) == set(range(begin, finish)) - points(start, end)
    assert np.all(last[:-1] < first[1:])


def test_different_lengths() -> None:
    with pytest.raises(ValueError, match="2 starts but 1 ends"):
        intervals.union([1, 2], [3])


@given(pairs, pairs)
def test_covers(items: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    cover, other = (
        intervals.Cover([first for first, _ in some], [last for _, last in some]) for some in (items, others)
    )
    mine, theirs = (points(some.start.tolist(), some.end.tolist()) for some in (cover, other))
    assert cover.total == len(mine)
    begin, end = np.arange(-25, 60), np.arange(-25, 60)[::-1]
    assert cover.before(begin).tolist() == [len({point for point in mine if point < time}) for time in begin]
    assert cover.within(begin, end).tolist() == [
        len({p for p in mine if a <= p < b}) for a, b in zip(begin, end, strict=True)
    ]
    for found, expected in ((cover.both(other), mine & theirs), (cover.without(other), mine - theirs)):
        assert points(found.start.tolist(), found.end.tolist()) == expected
        assert found.total == len(expected)
