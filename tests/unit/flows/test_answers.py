"""The methods of an opened report: stats, findings and overlaps by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import warplens
from warplens.testing.timeline import timeline

PICTURE = """
main:api |(cudaLaunchKernel#1)(cudaLaunchKernel#2)
gpu0.7   |      (gemm#1  )     (gemm#2 )
gpu0.8   |          (copy        )
main     |[step             ][step    ]
"""


@pytest.fixture
def report(tmp_path: Path) -> warplens.Report:
    timeline(tmp_path / "r.warplens", PICTURE)
    return warplens.open(tmp_path / "r.warplens")


def test_a_stat_with_options_and_of_a_part(report: warplens.Report) -> None:
    assert report.stats("cuda_gpu_kern_sum", base=True).column("Instances").to_pylist() == [2, 1]
    assert report.stats("nvtx_sum", nvtx="step/1").column("Instances").to_pylist() == [1]


def test_unknown_tables_and_options_are_named(report: warplens.Report) -> None:
    with pytest.raises(warplens.UsageError, match="cuda_gpu_kern_sum"):
        report.stats("cuda_gpu_kern_summ")
    with pytest.raises(warplens.UsageError, match="no option 'bsae'; it takes: nvtx_name, base"):
        report.stats("cuda_gpu_kern_sum", bsae=True)
    with pytest.raises(warplens.MissingData, match="GIL"):
        report.stats("gil_sum")


def test_overlap_counts_time_once(report: warplens.Report) -> None:
    found = report.overlap(
        'SELECT "start", "end" FROM kernels WHERE name = \'gemm\'',
        pa.table({"start": [report.origin], "end": [report.origin + 8_000]}),
    )
    assert (found.a, found.b, found.both) == (19_000, 8_000, 2_000)
    assert (found.only_a, found.only_b) == (17_000, 6_000)
    assert found.share == pytest.approx(2 / 19)
    assert report.overlap("kernels", "kernels").only_a == 0


def test_overlap_wants_times(report: warplens.Report) -> None:
    with pytest.raises(warplens.UsageError, match="there is no 'start' in name"):
        report.overlap("SELECT name FROM kernels", "kernels")


@pytest.mark.slow
def test_findings_and_what_was_not_judged(report: warplens.Report) -> None:
    judgement = report.judgement()
    assert judgement.findings == report.findings()
    assert set(judgement.silent).isdisjoint(judgement.not_judged)
    assert judgement.span == report.end - report.origin


def test_gaps_have_a_cause_and_a_least_length(report: warplens.Report) -> None:
    found = report.gaps(longer_than=1_000)
    assert found.num_rows
    lengths: dict[int, int] = {}
    for row in found.to_pylist():
        lengths[row["gap"]] = lengths.get(row["gap"], 0) + row["end"] - row["start"]
    assert min(lengths.values()) > 1_000
    assert None not in found.column("cause").to_pylist()
    assert report.gaps(device=3).num_rows == 0
    assert report.gaps(device=0, longer_than="1s").num_rows == 0
    assert set(report.gaps(device=0).column("device").to_pylist()) == {0}
