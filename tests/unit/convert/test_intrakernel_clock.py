"""The sandwich: offset and drift of a GPU's clock from launches whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from warplens.arrays import Int64Array
from warplens.convert.intrakernel import sandwich

OFFSET = -1_780_000_000_123_456_789  # the GPU counts from 1970, the report from the boot


def _launches(
    count: int, span_s: float, *, drift: float = 0.0, noise: float = 150.0, seed: int = 1, step: int = 32
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Times on the GPU's clock, bounds, and the true offset: the model of the issue (lead 0.4-2.5 us, tail 0.6-3 us)."""
    random = np.random.default_rng(seed)
    begin = 1_780_000_000_000_000_000 + np.sort(random.integers(0, int(span_s * 1e9) + 1, count))
    length = random.integers(5_000, 500_000, count)
    true = OFFSET + np.rint(drift * (begin - begin[0])).astype(np.int64)
    error = np.rint(random.normal(0, noise, count)).astype(np.int64)
    start = begin + true - random.integers(400, 2500, count) + error
    end = begin + length + true + random.integers(600, 3000, count) + error
    first, last = begin // step * step, (begin + length) // step * step
    return (first + last) // 2, start - first - step, end - last, true


@pytest.mark.parametrize(
    ("count", "span_s", "drift"),
    [(1, 0, 0), (3, 0.01, 0), (100, 0.5, 2e-5), (1000, 30, -3e-5), (50, 60, 8e-5), (5000, 1, 1e-5)],
)
@pytest.mark.parametrize("seed", range(5))
def test_truth_lies_within_the_stated_uncertainty(count: int, span_s: float, drift: float, seed: int) -> None:
    at, low, high, true = _launches(count, span_s, drift=drift, seed=seed)
    found = sandwich.fit(at, low, high)
    assert not found.odd.any()
    off = np.abs(found.offset - true)
    assert (off <= found.uncertainty).mean() >= 0.99, (
        int((off - found.uncertainty).max()),
        found.uncertainty.max(),
    )
    assert found.uncertainty.max() < 20_000
    # Inside its kernel, whatever the others say (bounds that noise has turned round aside).
    sane = low <= high
    assert ((found.offset >= low) & (found.offset <= high))[sane].all()


def test_more_launches_tell_more() -> None:
    widths = []
    for count in (1, 10, 100):
        each = [sandwich.fit(*_launches(count, 0.2, seed=seed)[:3]).uncertainty.max() for seed in range(20)]
        widths.append(float(np.median(each)))
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 1500


def test_drift_is_found_over_a_long_capture() -> None:
    at, low, high, _ = _launches(2000, 40, drift=3.5e-5)
    found = sandwich.fit(at, low, high)
    assert np.allclose(found.drift, 35, atol=0.5)


def test_drift_may_change() -> None:
    """NTP slews the host's clock now and then."""
    at, low, high, true = _launches(3000, 60)
    bend = np.rint(np.maximum(at - at[0] - 30_000_000_000, 0) * 2e-5).astype(np.int64)
    found = sandwich.fit(at, low + bend, high + bend)
    assert (np.abs(found.offset - true - bend) <= found.uncertainty).mean() > 0.99


def test_a_wrong_match_is_left_out() -> None:
    at, low, high, true = _launches(60, 0.3)
    low[7] += 5_000_000
    high[7] += 5_000_000
    low[30] -= 900_000
    high[30] -= 900_000
    found = sandwich.fit(at, low, high)
    assert np.flatnonzero(found.odd).tolist() == [7, 30]
    assert (np.abs(found.offset - true) <= found.uncertainty).all()


def test_wide_brackets_do_not_spoil_tight_ones() -> None:
    at, low, high, true = _launches(40, 0.3)
    high[::2] += 400_000_000
    found = sandwich.fit(at, low, high)
    assert (np.abs(found.offset - true) <= found.uncertainty).all()
    assert found.uncertainty.max() < 5_000


def test_the_clock_fits_zero_or_one_launch() -> None:
    assert len(sandwich.fit(*[np.empty(0, np.int64)] * 3).offset) == 0
    found = sandwich.fit(np.array([10**18]), np.array([100]), np.array([2100]))
    assert found.offset.tolist() == [1100]
    assert found.uncertainty.tolist() == [1200]


def test_times_between_launches() -> None:
    at, low, high, true = _launches(100, 20, drift=2e-5)
    known = np.arange(len(at)) % 2 == 0
    found = sandwich.fit(at[known], low[known], high[known])
    offset, uncertainty, _ = sandwich.between(at[~known], at[known], found)
    assert (np.abs(offset - true[~known]) <= uncertainty).all()


@pytest.mark.parametrize("step", [1, 32, 1000, 1024])
def test_how_fine_a_clock_is(step: int) -> None:
    stamps = np.random.default_rng(3).integers(0, 10**9, 500) * step + 7
    assert sandwich.tick(stamps) == step
    assert sandwich.tick(stamps[:3]) == 32
