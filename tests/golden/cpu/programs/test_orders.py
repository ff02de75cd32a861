"""Twelve tests, each of which computes for a tenth of a second: `pytest -n 2` shares them between two workers."""

import time

import pytest


@pytest.mark.parametrize("number", range(12))
def test_price(number: int) -> None:
    """Compute prices for 0.1 s of CPU time."""
    begin, total = time.process_time(), 0
    while time.process_time() - begin < 0.1:
        total += sum(place * number for place in range(1000))
    assert total >= 0
