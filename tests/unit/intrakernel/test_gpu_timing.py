"""What benchmarks of regions on a GPU make of times: checked with a clock of our own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(name="gpu")
def _gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("_intrakernel_gpu")


class Clock:
    """Goes on by what launches take; every launch costs 5 us, the first one of all 10 ms more, for compilation."""

    def __init__(self) -> None:
        self.now = 0
        self.late = 10_000_000

    def __call__(self) -> int:
        return self.now

    def take(self, ns: float) -> None:
        self.now += round(ns) + 5_000 + self.late
        self.late = 0


def test_the_cost_of_a_launch_is_not_part_of_a_pass(gpu: ModuleType) -> None:
    clock = Clock()
    noise: Iterator[int] = iter([0, 700, 20, 90_000] * 100)
    cases: dict[str, Callable[[int], object]] = {
        gpu.BARE: lambda passes: clock.take(4 * passes + next(noise)),
        gpu.REGION: lambda passes: clock.take(21.5 * passes),
        gpu.REFERENCE: lambda passes: clock.take(504 * passes),
    }
    found = gpu.per_pass(cases, lambda: None, 1000, clock=clock)
    assert found[gpu.REGION] == pytest.approx(21.5)
    assert found[gpu.BARE] == pytest.approx(4, abs=1)
    (row,) = gpu.region_rows("Any", found)
    assert row.value == pytest.approx(17.5, abs=1)
    assert row.peer_value == pytest.approx(500, abs=1)
    assert row.ok


def test_a_region_beyond_the_budget_is_said(gpu: ModuleType) -> None:
    rows = gpu.region_rows("Any", {gpu.BARE: 4.0, gpu.REGION: 44.1, gpu.RING: 60.0, gpu.REFERENCE: 500.0})
    assert [row.ok for row in rows] == [False, None]


def test_how_much_a_kernel_slows_is_the_median_of_pairs(gpu: ModuleType) -> None:
    clock = Clock()
    heat: Iterator[float] = iter([1.0, 1.0, 1.5, 1.0, 1.0] * 100)  # one in five takes half as long again

    def launch(ns: int) -> Callable[[], object]:
        return lambda: clock.take(ns * next(heat) - 5_000)

    bare, slower = gpu.slowdown(launch(1_010_000), launch(1_000_000), lambda: None, rounds=9, clock=clock)
    assert bare == pytest.approx(1.1, abs=0.01)  # ms
    assert slower == pytest.approx(1.01, abs=0.001)
    row = gpu.slowdown_row("product", (bare, slower), "")
    assert row.ok
    assert row.ratio == pytest.approx(slower)
