"""Stats of CUDA on reports that hold anything at all: a table, or an error of ours; never another exception."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import alike
from warplens import catalog
from warplens.errors import MissingData, WarplensError
from warplens.model.cuda_tables import CUDA_TABLES
from warplens.model.table import Column
from warplens.model.tables import TABLES
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


STATS = [
    unit
    for unit in catalog.units("stats.tables")
    if unit.id.startswith(("cuda_", "gpu_", "um_", "nvtx_gpu_", "nvtx_kern_"))
]
WORDS = ["", "gemm", "HtoD", "allocate", "PushPop", "StartEnd", "\x00\n\x1b[31m", "ü" * 300]
# What the types hold; times that add up are tried with less.
EDGES = {
    "int32": (1 << 31) - 1,
    "int64": (1 << 63) - 1,
    "uint64": (1 << 64) - 1,
    "uint32": (1 << 32) - 1,
    "int16": (1 << 15) - 1,
}


def value(rng: random.Random, column: Column, most: int) -> Any:
    if column.nullable and rng.random() < 0.3:
        return None
    if column.type in ("dict", "string"):
        return rng.choice(WORDS)
    if column.type == "bool":
        return rng.random() < 0.5
    if column.type == "float64":
        return rng.choice([0.0, -1.5, 1e308, float("nan"), float("inf")])
    edge = min(EDGES[column.type], most)
    low = 0 if column.type.startswith("u") else -edge - 1
    return (
        rng.choice([0, 1, 2, 3, 7, rng.randrange(1 << 14), edge, low, edge // 3])
        if rng.random() < 0.9
        else rng.randint(low, edge)
    )


def odd(path: Path, seed: int, most: int) -> None:
    rng = random.Random(seed)
    tables = [*CUDA_TABLES, TABLES["nvtx_ranges"]]
    rows = {
        table.name: [
            {column.name: value(rng, column, most) for column in table.columns}
            for _ in range(rng.randrange(40))
        ]
        for table in tables
    }
    timeline(path, "main |!x", tables=rows)


@pytest.mark.parametrize(
    ("seed", "most"),
    alike([(0, 1 << 64), (1, 1 << 64), (2, 1 << 40), (3, 1 << 40)], (0, 1 << 64), (2, 1 << 40)),
)
def test_every_stat_survives_random_reports(tmp_path: Path, seed: int, most: int) -> None:
    odd(tmp_path / "r.warplens", seed, most)
    report = open_report(tmp_path / "r.warplens")
    computed = 0
    for unit in STATS:
        for selection in (Selection(), Selection.parse("0s/1s")):
            try:
                table = unit.load().table(report, selection)
            except WarplensError:
                continue
            table.validate(full=True)
            computed += 1
    assert computed  # or the test tests nothing


def test_ids_that_lead_nowhere_belong_to_no_range(tmp_path: Path) -> None:
    picture = "main |[step    ]\nmain:api | (cudaLaunchKernel#1)\ngpu0.7 |     (gemm#1 ) (gemm#2 )"
    timeline(tmp_path / "r.warplens", picture, cuda={"#2": {"api": 1 << 40}})
    report = open_report(tmp_path / "r.warplens")
    (row,) = catalog.find("stats.tables", "nvtx_kern_sum").load().table(report, Selection()).to_pylist()
    assert row["Kern Inst"] == 1
    timeline(tmp_path / "s.warplens", picture, cuda={"gemm": {"api": 1 << 40}})
    with pytest.raises(MissingData):
        catalog.find("stats.tables", "nvtx_kern_sum").load().table(
            open_report(tmp_path / "s.warplens"), Selection()
        )
