"""The critical path against programs whose truth is known: drawn ones, and random ones that are run again."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.support.thorough import few
from tests.unit.analysis.simulated import Thread, program, run, write
from warplens.analysis.critical_path import build, path
from warplens.report import Selection
from warplens.report import open as open_report

pytestmark = pytest.mark.slow


SHAPES = {
    "one thread": {},
    "two threads": {"threads": 2},
    "three processes": {"processes": 3},
    "collectives": {"processes": 3, "collectives": True},
}


def made(tmp_path: Path, seed: int, shape: str) -> tuple[list[Thread], Path]:
    threads = program(random.Random(seed), **SHAPES[shape])  # type: ignore[arg-type]
    return threads, write(tmp_path / "r.warplens", run(threads), threads)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", few(range(20)))
def test_a_what_if_is_what_another_run_gives(tmp_path: Path, seed: int, shape: str) -> None:
    threads, place = made(tmp_path, seed, shape)
    with open_report(place) as report:
        graph = build(report, Selection())
        found = path(report, graph)
        assert graph.dag.dead == 0
        assert found.length == run(threads).end
        for name in ("gemm", "relu", "cudaLaunchKernel", "CPU", "memcpy", "kernel", "nosuch"):
            for factor in (0.0, 0.5, 2.0):

                def scale(one: str, name: str = name, factor: float = factor) -> float:
                    kernel = one in ("gemm", "relu", "softmax", "warm")
                    copy = one in ("HtoD", "DtoD", "DtoH")
                    means = (
                        one == name
                        or (name == "CPU" and one == "cpu")
                        or (name == "kernel" and kernel)
                        or (name == "memcpy" and copy)
                    )
                    return factor if means else 1.0

                assert found.what_if(found.matching(name), factor) == run(threads, scale).end, (name, factor)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", few(range(4)))
def test_the_path_is_whole_and_slack_is_true(tmp_path: Path, seed: int, shape: str) -> None:
    _, place = made(tmp_path, 100 + seed, shape)
    with open_report(place) as report:
        graph = build(report, Selection())
        found = path(report, graph)
        start, length = found.all.start[found.on], found.all.length[found.on]
        # One thing after the other, without a gap, from the first point to the last.
        assert start[0] == graph.begin + found.before
        assert np.array_equal(start[1:], (start + length)[:-1])
        assert int(length.sum()) + found.before == found.length
        slack = found.slack()
        assert slack.min() >= 0
        assert (slack[found.on] == 0).all()
        # What is longer by its slack ends no later; by one more it does.
        rng = random.Random(seed)
        for row in rng.sample(range(len(slack)), 20):
            edge = found.all.edge[row]
            weight = graph.edges["weight"].copy()
            binds = graph.dag.binding[graph.edges["end"][edge]] == edge
            weight[edge] += slack[row]
            assert graph.ends_with(weight) == graph.end
            weight[edge] += 1
            if binds:
                assert graph.ends_with(weight) == graph.end + 1
