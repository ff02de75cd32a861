"""cuda_kern_exec_trace and cuda_kern_exec_sum on a small drawn report."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


# The second kernel begins before its call returns; the fourth has no call.
PICTURE = """
main       |[step                ]
main:api   |(cudaLaunchKernel#1)(cuLaunchKernelEx#2 )(cudaLaunchKernel#3)
gpu0.7     |                        (gemm#1    )                     (gemm#3      )
gpu1.7     |                               (add#2 )                       (lost   )
"""
KERNELS: dict[str, dict[str, Any]] = {
    "gemm": {"demangled": "void gemm<float>()", "mangled": "_Z4gemm", "grid_x": 1024}
}


def table(report: Report, stat: str, selection: Selection | None = None, **options: Any) -> Any:
    return catalog.find("stats.tables", stat).load().table(report, selection or Selection(), **options)


def rows(
    report: Report, stat: str, selection: Selection | None = None, **options: Any
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(report, stat, selection, **options).to_pylist()
    return found


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(tmp_path / "r.warplens", PICTURE, cuda=KERNELS)
    return open_report(tmp_path / "r.warplens")


def test_every_launch_with_its_times(report: Report) -> None:
    found = rows(report, "cuda_kern_exec_trace")
    times = [
        "API Start (ns)",
        "API Dur (ns)",
        "Queue Start (ns)",
        "Queue Dur (ns)",
        "Kernel Start (ns)",
        "Kernel Dur (ns)",
        "Total Dur (ns)",
    ]
    assert list(found[0]) == [
        *times,
        "PID",
        "TID",
        "DevId",
        "API Function",
        "GridXYZ",
        "BlockXYZ",
        "Kernel Name",
    ]
    in_us = [[row[name] if row[name] is None else row[name] / 1000 for name in times] for row in found]
    assert in_us == [
        [0, 20, 20, 4, 24, 12, 36],
        [20, 21, None, None, 31, 8, 21],
        [41, 20, None, None, 57, 14, 30],
    ]
    assert [(row["DevId"], row["API Function"], row["GridXYZ"], row["Kernel Name"]) for row in found] == [
        (0, "cudaLaunchKernel", "1024    1    1", "void gemm<float>()"),
        (1, "cuLaunchKernelEx", "   1    1    1", "add"),
        (0, "cudaLaunchKernel", "1024    1    1", "void gemm<float>()"),
    ]
    assert notes(table(report, "cuda_kern_exec_trace")) == [
        "1 kernel without an API call left out; it was before the recording, or lost."
    ]


def test_launches_are_summed_by_kernel_thread_and_call(report: Report) -> None:
    found = rows(report, "cuda_kern_exec_sum", base=True)
    figures = [f"{kind}{name} (ns)" for kind in "TAQK" for name in ("Avg", "Med", "Min", "Max", "StdDev")]
    assert list(found[0]) == ["PID", "TID", "DevId", "Count", "QCount", *figures, "API Name", "Kernel Name"]
    gemm, add = found
    assert (gemm["PID"], gemm["TID"], gemm["DevId"], gemm["Count"], gemm["QCount"], gemm["Kernel Name"]) == (
        100,
        1000,
        0,
        2,
        1,
        "gemm",
    )
    assert [gemm[f"T{name} (ns)"] for name in ("Avg", "Med", "Min", "Max")] == [
        33_000,
        33_000,
        30_000,
        36_000,
    ]
    assert gemm["TStdDev (ns)"] == pytest.approx(statistics.stdev([36_000, 30_000]))
    assert [gemm[f"{kind}Avg (ns)"] for kind in "AQK"] == [20_000, 4_000, 13_000]
    assert (
        gemm["QStdDev (ns)"],
        add["QStdDev (ns)"],
        add["QAvg (ns)"],
        add["QCount"],
        add["TStdDev (ns)"],
    ) == (0, None, None, 0, 0)
    assert len(notes(table(report, "cuda_kern_exec_sum"))) == 1


def test_other_names_of_kernels(report: Report) -> None:
    assert [row["Kernel Name"] for row in rows(report, "cuda_kern_exec_trace", mangled=True)] == [
        "_Z4gemm",
        "add",
        "_Z4gemm",
    ]
    named = rows(report, "cuda_kern_exec_sum", base=True, nvtx_name=True)
    assert {row["Kernel Name"] for row in named} == {":step/gemm", ":step/add", "gemm"}


def test_a_filter_takes_launches_from_call_to_kernel(report: Report) -> None:
    chosen = Selection.parse("22us/23us")  # the first call is over, its kernel has not begun
    assert [row["API Start (ns)"] for row in rows(report, "cuda_kern_exec_trace", chosen)] == [0, 20_000]
    assert notes(table(report, "cuda_kern_exec_trace", chosen)) == []
    assert len(notes(table(report, "cuda_kern_exec_trace", Selection.parse("50us/")))) == 1


def test_without_calls_or_kernels_it_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "gpu0.7 |(gemm )")
    timeline(tmp_path / "s.warplens", "main |[x ]")
    for stat in ("cuda_kern_exec_trace", "cuda_kern_exec_sum"):
        with pytest.raises(
            MissingData, match=r"^does not contain the API calls that its kernels were launched by"
        ):
            rows(open_report(tmp_path / "r.warplens"), stat)
        with pytest.raises(MissingData, match=r"^does not contain CUDA kernel data\.$"):
            rows(open_report(tmp_path / "s.warplens"), stat)
