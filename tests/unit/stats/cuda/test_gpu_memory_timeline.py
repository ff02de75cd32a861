"""gpu_memory_timeline: levels in stretches of time, and who held what at the peak."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.stats.drawing import line
from warplens import catalog
from warplens.analysis.gpu.memory_levels import MemoryLevel
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

TICK, ORIGIN = 1_000, 1_000_000_000
MB = 1_000_000
Row = dict[str, Any]


def stat(report: Report, selection: Selection | None = None, **options: Any) -> list[Row]:
    found: list[Row] = (
        catalog.find("stats.tables", "gpu_memory_timeline")
        .load()
        .table(report, selection or Selection(), **options)
        .to_pylist()
    )
    return found


def tensor(
    number: int, at: int, address: int, size: int, *, allocated: int | None = None, **more: Any
) -> Row:
    about = {
        "id": number,
        "process": 0,
        "thread": 0,
        "start": ORIGIN + at * TICK,
        "device": 0,
        "device_type": "CUDA",
        "address": address,
    }
    return {**about, "bytes": size * MB, "allocated": None if allocated is None else allocated * MB, **more}


@pytest.mark.slow
def test_levels_of_tensors_and_of_cuda(tmp_path: Path) -> None:
    picture = [
        line("main", (0, 100, "[step")),
        line("main:api", (2, 20, "(cudaMalloc#1")),
        "gpu0:memory |          +60000000#1                                                  -60000000",
    ]
    rows = [
        tensor(0, 20, 1, 5, allocated=105, reserved=200 * MB, range=0),
        tensor(1, 30, 2, 10, allocated=115, reserved=200 * MB),
        tensor(2, 55, 1, -5, allocated=110, reserved=200 * MB),
        tensor(3, 90, 2, -10, allocated=100, reserved=150 * MB),
    ]
    timeline(
        tmp_path / "r.warplens",
        "\n".join(picture),
        tick_ns=TICK,
        origin=ORIGIN,
        tables={"tensor_memory": rows},
    )
    with open_report(tmp_path / "r.warplens") as report:
        found = stat(report, bins=5)
        assert [row["Start (ns)"] // TICK for row in found] == [0, 20, 40, 60, 80]
        assert [row["Tensors (MB)"] for row in found] == [0, 115, 115, 110, 110]
        assert [row["Reserved (MB)"] for row in found] == [0, 200, 200, 200, 200]
        assert [row["CUDA (MB)"] for row in found] == [60, 60, 60, 60, 0]
        table = catalog.find("stats.tables", "gpu_memory_timeline").load().table(report, Selection(), bins=5)
        assert "tensors: at most 115.0 MB on GPU 0, at 30,000 ns" in " ".join(notes(table))
        peak = [
            (row["Kind"], row["Range"], row["Memory (MB)"], row["Allocations"])
            for row in stat(report, peak=True)
        ]
        assert peak == [
            ("CUDA", ":step", 60, 1),
            ("tensors", "[before the recording]", 100, None),
            ("tensors", "[no range]", 10, 1),
            ("tensors", ":step", 5, 1),
        ]
        late = stat(report, Selection((60 * TICK, 80 * TICK)), peak=True)
        assert [(row["Range"], row["Memory (MB)"]) for row in late if row["Kind"] == "tensors"] == [
            ("[before the recording]", 100),
            ("[no range]", 10),
        ]


@pytest.mark.slow
def test_totals_that_were_not_recorded_are_counted(tmp_path: Path) -> None:
    rows = [tensor(0, 1, 1, 5), tensor(1, 2, 2, 7), tensor(2, 3, 1, -5), tensor(3, 4, 1, 1)]
    timeline(
        tmp_path / "r.warplens",
        "main |[step   ]",
        tick_ns=TICK,
        origin=ORIGIN,
        tables={"tensor_memory": rows},
    )
    with open_report(tmp_path / "r.warplens") as report:
        assert [row["Tensors (MB)"] for row in stat(report, bins=9)] == [0, 5, 12, 7, 8, 8, 8, 8, 8]
        assert [(row["Memory (MB)"], row["Allocations"]) for row in stat(report, peak=True)] == [(12, 2)]


def test_missing_data_and_wrong_options_are_named(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step   ]")
    with open_report(tmp_path / "r.warplens") as report:
        with pytest.raises(MissingData, match="does not contain GPU memory data"):
            stat(report)
        with pytest.raises(UsageError, match="bins=0"):
            stat(report, bins=0)


@pytest.mark.parametrize("seed", range(20))
def test_highest_and_peak_against_every_tick(seed: int) -> None:
    rng = random.Random(seed)
    times = sorted(rng.choices(range(60), k=rng.randrange(1, 30)))
    values = [rng.randrange(100) for _ in times]
    level = MemoryLevel(0, 0, "CUDA", np.array(times, np.int64), np.array(values, np.int64))

    def at(tick: int) -> int:
        return next(
            (value for time, value in reversed(list(zip(times, values, strict=True))) if time <= tick), 0
        )

    edges = sorted(rng.sample(range(-5, 70), 8))
    expected = []
    for begin, end in pairwise(edges):
        expected.append(
            max(
                [at(begin), *(value for time, value in zip(times, values, strict=True) if begin < time < end)]
            )
        )
    assert level.highest(np.array(edges[:-1], np.int64), np.array(edges[1:], np.int64)).tolist() == expected
    before = [value for time, value in zip(times, values, strict=True) if time < edges[0]][-1:]
    inside = [value for time, value in zip(times, values, strict=True) if edges[0] <= time < edges[-1]]
    assert level.peak(edges[0], edges[-1])[1] == max([*before, *inside, 0] if before or inside else [0])
