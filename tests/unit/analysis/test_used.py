"""CPUs used over time, against looking at every moment."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.unit.rules.asking import drawn
from warplens.analysis.cpu.used import _over_time, cpus_used

MS = 1_000_000


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_of_each_stretch(seed: int) -> None:
    rng = random.Random(seed)
    start = np.array([rng.randrange(0, 900) for _ in range(30)]) * MS
    end = start + np.array([rng.randrange(1, 300) for _ in range(30)]) * MS
    edges, values = _over_time(start, end)
    for first, last, value in zip(edges[:-1], edges[1:], values, strict=True):
        inside = np.maximum(np.minimum(end, last) - np.maximum(start, first), 0).sum()
        assert value == pytest.approx(inside / (last - first), abs=1e-6)


PICTURE = """
a:state     |(running )(blocked           )
b:state     |(running                     )
p1/c:state  |(blocked                     )
a:python    |(work                        )
"""


def test_threads_that_wait_use_no_cpu(tmp_path: Path) -> None:
    used = {process: values for process, _, values in cpus_used(drawn(tmp_path, PICTURE, tick_ns=10 * MS))}
    assert list(used) == [0]
    assert used[0][:10].tolist() == pytest.approx([2] * 10)
    assert used[0][10:-1].tolist() == pytest.approx([1] * (len(used[0]) - 11))
    assert np.isnan(used[0][-1])


def test_without_states_samples_of_threads_that_ran_count(tmp_path: Path) -> None:
    picture = "a:python |(work      )\nb:python |(sleep     )"
    cpu = {"sleep": {"on_cpu": False}}
    ((_, _, values),) = cpus_used(drawn(tmp_path, picture, tick_ns=10 * MS, cpu=cpu))
    assert np.nanmax(values) == pytest.approx(1)
