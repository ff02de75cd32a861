"""Extremes of stretches against Python's own min and max."""

from __future__ import annotations

import numpy as np
import pytest

from warplens.analysis.extremes import Extremes


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 64, 65, 1000, 4097])
@pytest.mark.parametrize("greatest", [False, True])
def test_any_stretch_has_its_extreme(length: int, greatest: bool) -> None:
    rng = np.random.default_rng(length)
    values = rng.integers(-(1 << 62), 1 << 62, length)
    first = rng.integers(0, length, 500)
    last = first + 1 + rng.integers(0, length, 500) % (length - first)
    first, last = np.append(first, [0, length - 1]), np.append(last, [length, length])
    best = max if greatest else min
    expected = [best(values[begin:end].tolist()) for begin, end in zip(first, last, strict=True)]
    assert Extremes.among(values, greatest=greatest).of(first, last).tolist() == expected


def test_no_stretch_of_nothing() -> None:
    nothing = np.empty(0, np.int64)
    assert Extremes.among(nothing, greatest=True).of(nothing, nothing).tolist() == []
