"""For how long GPUs did something."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.analysis.gpu.ops import busy
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

PICTURE = """
a/gpu0.7 |(gemm   )   (HtoD )
a/gpu0.8 |    (add    )
a/gpu1.7 |  (memset )
b/gpu0.7 |       (graph   )
"""


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(tmp_path / "r.warplens", PICTURE, origin=1_000_000)
    return open_report(tmp_path / "r.warplens")


def test_overlapping_work_counts_once(report: Report) -> None:
    found = busy(report, Selection()).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (0, 0, 3, 19_000, 1_000_000, 1_019_000),
        (0, 1, 1, 9_000, 1_002_000, 1_011_000),
        (1, 0, 1, 10_000, 1_007_000, 1_017_000),
    ]


@pytest.mark.slow
def test_a_selection_cuts(report: Report) -> None:
    found = busy(report, Selection.parse("6us/9us")).to_pylist()
    assert [(row["operations"], row["busy"]) for row in found] == [(2, 3_000), (1, 3_000), (1, 2_000)]


def test_no_gpu_work_gives_no_row(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    assert busy(open_report(tmp_path / "r.warplens"), Selection()).num_rows == 0
