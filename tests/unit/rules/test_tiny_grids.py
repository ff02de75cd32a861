"""Kernels on a small grid: found where they are long and alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules.asking import US, ask, costs, drawn, not_judged, one

pytestmark = pytest.mark.slow

STEP = "gpu0.7 |(gemm  )" + "(serial ".ljust(59) + ")(gemm  )"
H100: dict[str, Any] = {
    "gpu0": {"multiprocessors": 100},
    "gemm": {"grid_x": 400},
    "serial": {"grid_x": 1, "block_x": 1},
}


def test_one_block(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, STEP, cuda=H100), "tiny_grids")
    # 60 on one of 100 multiprocessors: 0.6 on all of them
    assert (finding.bound, finding.estimate) == (60 * US, 59_400)
    assert (finding.subject, finding.occurrences, finding.confidence, finding.severity) == (
        "serial",
        1,
        "medium",
        "high",
    )
    assert (
        finding.title == "serial ran for 60.0 us on 1 block of 1 thread, while the rest of the GPU was idle"
    )
    assert "99 of the 100 multiprocessors were idle" in finding.cause
    assert finding.evidence[0].values == {"blocks": 1, "threads": 1, "multiprocessors": 100}


@pytest.mark.parametrize(
    "wide", [{"grid_x": 10}, {"grid_x": 1, "grid_y": 10}, {"grid_z": 10}, {"grid_x": 0, "grid_y": 0}]
)
def test_enough_blocks(tmp_path: Path, wide: dict[str, Any]) -> None:
    assert ask(drawn(tmp_path, STEP, cuda={**H100, "serial": wide}), "tiny_grids") == []


def test_short_ones_are_left_out(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, "gpu0.7 |" + "(serial".ljust(48) + ")", cuda=H100), "tiny_grids") == []


def test_communication_is_left_out(tmp_path: Path) -> None:
    name = "ncclDevKernel_AllReduce"
    assert (
        ask(drawn(tmp_path, STEP.replace("serial ".ljust(58), name.ljust(58)), cuda=H100), "tiny_grids") == []
    )


def test_a_tiny_grid_beside_another_kernel_costs_nothing(tmp_path: Path) -> None:
    beside = f"{STEP}\ngpu0.8 |        (gemm                       )"
    assert costs(one(drawn(tmp_path, beside, cuda=H100), "tiny_grids")) == (31, 30)


def test_without_the_number_of_multiprocessors(tmp_path: Path) -> None:
    assert (
        not_judged(drawn(tmp_path, STEP), "tiny_grids")
        == "does not contain the number of multiprocessors of its GPUs."
    )
