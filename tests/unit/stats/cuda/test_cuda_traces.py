"""cuda_api_trace and cuda_gpu_trace on small drawn reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.stats.asking import stat
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
w          |                   [x]
main       |[step                      ]
main:api   |   (cudaLaunchKernel#1 )(cudaMemcpyAsync#3)
w:api      | (cuLaunchKernel#2 )
gpu0.7     |                    (gemm#1   )(HtoD#3  )(memset  )
gpu1.9     |                  (add#2 )
:um        |                                                      (DtoH )
"""
DETAILS: dict[str, dict[str, Any]] = {
    "gemm": {
        "demangled": "void gemm<float>()",
        "mangled": "_Z4gemm",
        "grid_x": 7,
        "block_z": 3,
        "static_shared": 1500,
        "registers": 40,
    },
    "HtoD": {"bytes": 5_000_000},
    "gpu0": {"name": "H100"},
    "gpu1": {"name": "H100"},
    "cuLaunchKernel": {"result": 700},
}


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(tmp_path / "r.warplens", PICTURE, cuda=DETAILS)
    return open_report(tmp_path / "r.warplens")


def test_calls_in_order(report: Report) -> None:
    found = stat(report, "cuda_api_trace")
    assert list(found[0]) == [
        "Start (ns)",
        "Duration (ns)",
        "Name",
        "Result",
        "CorrID",
        "Pid",
        "Tid",
        "T-Pri",
        "Thread Name",
    ]
    assert [tuple(row.values()) for row in found] == [
        (1_000, 19_000, "cuLaunchKernel", 700, 2, 100, 1000, None, "w"),
        (3_000, 21_000, "cudaLaunchKernel", 0, 1, 100, 1001, None, "main"),
        (24_000, 19_000, "cudaMemcpyAsync", 0, 3, 100, 1001, None, "main"),
    ]
    assert [row["CorrID"] for row in stat(report, "cuda_api_trace", Selection.parse("20us/22us"))] == [1]


def test_operations_in_order(report: Report) -> None:
    found = stat(report, "cuda_gpu_trace")
    sizes = ["GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)", "DymSMem (MB)"]
    copies = ["Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd"]
    assert list(found[0]) == [
        "Start (ns)",
        "Duration (ns)",
        "CorrId",
        *sizes,
        *copies,
        "Device",
        "Ctx",
        "GreenCtx",
        "Strm",
        "Name",
    ]
    assert [(row["Start (ns)"], row["CorrId"], row["Name"]) for row in found] == [
        (18_000, 2, "add"),
        (20_000, 1, "void gemm<float>()"),
        (31_000, 3, "[CUDA memcpy Host-to-Device]"),
        (41_000, None, "[CUDA memset]"),
        (54_000, None, "[CUDA memcpy Unified Device-to-Host]"),
    ]
    _, gemm, copy, memset, migration = found
    assert [gemm[name] for name in sizes] == [7, 1, 1, 128, 1, 3, 40, 0.0015, 0.0]
    assert [gemm[name] for name in copies] == [None] * 4
    assert [copy[name] for name in copies] == [
        5.0,
        pytest.approx(500_000.0),
        "Pageable",
        "Device",
    ]  # 5 MB in 10 us
    assert [copy[name] for name in sizes] == [None] * 9
    assert (memset["SrcMemKd"], memset["DstMemKd"]) == (None, "Device")
    assert [row["Device"] for row in found] == ["H100 (1)", *["H100 (0)"] * 4]
    assert (gemm["Ctx"], gemm["GreenCtx"], gemm["Strm"], migration["Strm"]) == (1, None, 7, None)


def test_other_names_of_kernels(report: Report) -> None:
    assert [row["Name"] for row in stat(report, "cuda_gpu_trace", base=True)][:2] == ["add", "gemm"]
    assert [row["Name"] for row in stat(report, "cuda_gpu_trace", mangled=True, nvtx_name=True)][:2] == [
        "add",
        ":step/_Z4gemm",
    ]


def test_operations_of_several_processes_have_a_pid(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "a/gpu0.7 |(gemm)\nb/gpu0.7 | (gemm)")
    found = stat(open_report(tmp_path / "r.warplens"), "cuda_gpu_trace")
    assert [(row["PID"], row["Device"][-3:]) for row in found] == [(100, "(0)"), (101, "(0)")]


def test_a_report_without_such_data_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    plain = open_report(tmp_path / "r.warplens")
    with pytest.raises(MissingData, match=r"^does not contain CUDA trace data\.$"):
        stat(plain, "cuda_api_trace")
    with pytest.raises(MissingData, match=r"^does not contain CUDA kernel or GPU memory data\.$"):
        stat(plain, "cuda_gpu_trace")
