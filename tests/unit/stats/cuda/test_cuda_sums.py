"""cuda_api_sum and the summaries of what GPUs did, on small drawn reports."""

from __future__ import annotations

import math
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.stats.asking import stat
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

PICTURE = """
main       |[step                    ]
main@lib   |  [inner  ]
main:api   |   (cudaLaunchKernel#1 )(cudaLaunchKernel#2)(cudaMemcpyAsync#3)(cudaStreamSynchronize  )
gpu0.7     |                 (gemm#1   )(gemm#2 )(HtoD#3  )(memset )(graph#9     )
gpu0.8     |                      (add     )
"""
BLOCK = ["Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
SUM = ["Time (%)", "Total Time (ns)", "Instances", *BLOCK]
NAMES: dict[str, dict[str, Any]] = {
    "gemm": {"demangled": "void lib::gemm<float>(float*)", "mangled": "_Zgemm", "grid_x": 1000, "block_y": 2},
    "add": {"mangled": None},
}


def drawn(path: Path, picture: str = PICTURE, **more: Any) -> Report:
    timeline(path / "r.warplens", picture, cuda=NAMES, **more)
    return open_report(path / "r.warplens")


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return drawn(tmp_path)


def test_calls_are_summed_by_function(report: Report) -> None:
    found = stat(report, "cuda_api_sum")
    assert list(found[0]) == ["Time (%)", "Total Time (ns)", "Num Calls", *BLOCK, "Name"]
    assert [(row["Name"], row["Total Time (ns)"], row["Num Calls"]) for row in found] == [
        ("cudaLaunchKernel", 41_000, 2),
        ("cudaStreamSynchronize", 25_000, 1),
        ("cudaMemcpyAsync", 19_000, 1),
    ]
    launch = found[0]
    assert (launch["Avg (ns)"], launch["Med (ns)"], launch["Min (ns)"], launch["Max (ns)"]) == (
        20_500,
        20_500,
        20_000,
        21_000,
    )
    assert math.isclose(launch["StdDev (ns)"], statistics.stdev([20_000, 21_000]))
    assert found[1]["StdDev (ns)"] == 0
    assert math.isclose(sum(row["Time (%)"] for row in found), 100)


def test_kernels_are_summed_by_their_full_name(report: Report) -> None:
    found = stat(report, "cuda_gpu_kern_sum")
    assert list(found[0]) == [*SUM, "Name"]
    assert [(row["Name"], row["Total Time (ns)"], row["Instances"]) for row in found] == [
        ("void lib::gemm<float>(float*)", 20_000, 2),
        ("add", 10_000, 1),
    ]
    assert [row["Time (%)"] for row in found] == pytest.approx([200 / 3, 100 / 3])


@pytest.mark.slow
def test_other_names_of_kernels(report: Report) -> None:
    assert {row["Name"] for row in stat(report, "cuda_gpu_kern_sum", base=True)} == {"gemm", "add"}
    assert {row["Name"] for row in stat(report, "cuda_gpu_kern_sum", mangled=True)} == {"_Zgemm", "add"}
    named = {
        row["Name"]: row["Instances"] for row in stat(report, "cuda_gpu_kern_sum", base=True, nvtx_name=True)
    }
    assert named == {"lib:inner/gemm": 1, ":step/gemm": 1, "add": 1}
    with pytest.raises(UsageError, match="one of them"):
        stat(report, "cuda_gpu_kern_sum", base=True, mangled=True)


@pytest.mark.slow
def test_kernels_by_size(report: Report) -> None:
    found = stat(report, "cuda_gpu_kern_gb_sum", base=True)
    assert list(found[0]) == [*SUM, "GridXYZ", "BlockXYZ", "Name"]
    assert [(row["GridXYZ"], row["BlockXYZ"], row["Name"]) for row in found] == [
        ("1000    1    1", " 128    2    1", "gemm"),
        ("   1    1    1", " 128    1    1", "add"),
    ]


@pytest.mark.slow
def test_copies_and_memsets(report: Report) -> None:
    found = stat(report, "cuda_gpu_mem_time_sum")
    assert list(found[0]) == ["Time (%)", "Total Time (ns)", "Count", *BLOCK, "Operation"]
    assert [(row["Operation"], row["Total Time (ns)"]) for row in found] == [
        ("[CUDA memcpy Host-to-Device]", 10_000),
        ("[CUDA memset]", 9_000),
    ]
    found = stat(report, "cuda_gpu_mem_size_sum")
    assert list(found[0]) == [
        "Total (MB)",
        "Count",
        "Avg (MB)",
        "Med (MB)",
        "Min (MB)",
        "Max (MB)",
        "StdDev (MB)",
        "Operation",
    ]
    assert [(row["Total (MB)"], row["Max (MB)"], row["Count"]) for row in found] == [(0.001, 0.001, 1)] * 2


def test_migrations_of_unified_memory_are_copies(tmp_path: Path) -> None:
    report = drawn(tmp_path, ":um |(HtoD  ) (DtoH ) (HtoD )(CPU_page_fault  )")
    assert [(row["Operation"], row["Count"]) for row in stat(report, "cuda_gpu_mem_time_sum")] == [
        ("[CUDA memcpy Unified Host-to-Device]", 2),
        ("[CUDA memcpy Unified Device-to-Host]", 1),
    ]


@pytest.mark.slow
def test_cuda_gpu_sum_has_all_gpu_work(report: Report) -> None:
    found = stat(report, "cuda_gpu_sum", base=True)
    assert list(found[0]) == [*SUM, "Category", "Operation"]
    assert [(row["Category"], row["Operation"], row["Total Time (ns)"]) for row in found] == [
        ("CUDA_KERNEL", "gemm", 20_000),
        ("CUDA_GRAPH", "[CUDA graph 1]", 14_000),
        ("CUDA_KERNEL", "add", 10_000),
        ("MEMORY_OPER", "[CUDA memcpy Host-to-Device]", 10_000),
        ("MEMORY_OPER", "[CUDA memset]", 9_000),
    ]


@pytest.mark.slow
def test_calls_and_operations_in_one_table(report: Report) -> None:
    found = stat(report, "cuda_api_gpu_sum", base=True)
    assert list(found[0]) == [*SUM, "Category", "Operation"]
    assert [row["Category"] for row in found[:3]] == ["CUDA_API", "CUDA_API", "CUDA_KERNEL"]
    assert len(found) == 8
    assert math.isclose(sum(row["Time (%)"] for row in found), 100)


TWO = """
p0/main:api |(cudaLaunchKernel#1)
p0/gpu0.7   |   (gemm#1    )(HtoD )
p0/gpu1.7   |   (gemm   )
p1/main:api |(cudaLaunchKernel#1)
p1/gpu0.7   |   (gemm#1     )(add  )
"""


@pytest.mark.slow
def test_gpus_and_processes_are_kept_apart_where_there_are_several(tmp_path: Path) -> None:
    report = drawn(tmp_path, TWO, ranks={"p0": 0, "p1": 1})
    found = stat(report, "cuda_gpu_kern_sum", base=True)
    assert list(found[0]) == [*SUM, "Rank", "PID", "Device", "Name"]
    assert [
        (row["Rank"], row["PID"], row["Device"][-3:], row["Name"], row["Total Time (ns)"]) for row in found
    ] == [
        (0, 100, "(0)", "gemm", 12_000),
        (0, 100, "(1)", "gemm", 9_000),
        (1, 101, "(0)", "gemm", 13_000),
        (1, 101, "(0)", "add", 7_000),
    ]
    assert [row["Time (%)"] for row in found] == [100, 100, 65, 35]
    together = stat(report, "cuda_gpu_kern_sum", base=True, all_gpus=True)
    assert list(together[0]) == [*SUM, "Name"]
    assert [(row["Name"], row["Total Time (ns)"], row["Instances"]) for row in together] == [
        ("gemm", 34_000, 3),
        ("add", 7_000, 1),
    ]
    # a table whose rows do not differ in it has no column for it
    assert list(stat(report, "cuda_gpu_mem_time_sum")[0])[-1:] == ["Operation"]
    assert "PID" not in stat(report, "cuda_gpu_mem_time_sum")[0]
    both = stat(report, "cuda_api_gpu_sum", base=True)
    assert [(row["PID"], row["Category"], row["Device"] and row["Device"][-3:]) for row in both][:3] == [
        (100, "CUDA_API", None),
        (100, "CUDA_KERNEL", "(0)"),
        (100, "CUDA_KERNEL", "(1)"),
    ]
    assert list(stat(report, "cuda_api_gpu_sum", all_gpus=True)[0]) == [*SUM, "Category", "Operation"]


@pytest.mark.slow
def test_graphs_without_their_kernels_are_noted(report: Report, tmp_path: Path) -> None:
    graphs = "1 graph launch recorded as a whole; --cuda-graph-trace=node has their kernels."
    tables = {
        name: catalog.find("stats.tables", name).load().table
        for name in ("cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "nvtx_kern_sum")
    }
    for table in tables.values():
        assert notes(table(report, Selection())) == [graphs]
        assert notes(table(report, Selection.parse("/30us"))) == []
    timeline(tmp_path / "g.warplens", "main |[step    ]\nmain:api |(cudaGraphLaunch#1)\ngpu0.7 |  (graph#1 )")
    for table in (*tables.values(), catalog.find("stats.tables", "cuda_kern_exec_sum").load().table):
        with pytest.raises(MissingData, match=rf"^does not contain CUDA kernel data: {graphs}$"):
            table(open_report(tmp_path / "g.warplens"), Selection())


@pytest.mark.slow
def test_hosts_are_told_apart(tmp_path: Path) -> None:
    for host in ("one", "two"):
        timeline(tmp_path / "r.warplens", "gpu0.7 |(gemm )", part=f"{host}-1-1", host=host, boot_id=host)
    found = stat(open_report(tmp_path / "r.warplens"), "cuda_gpu_kern_sum")
    assert [(row["Host"], row["PID"], row["Time (%)"]) for row in found] == [
        ("one", 100, 100),
        ("two", 100, 100),
    ]
    assert "Device" not in found[0]  # of each process the same one


@pytest.mark.slow
def test_a_filter_keeps_what_overlaps_whole(report: Report) -> None:
    found = stat(report, "cuda_gpu_sum", Selection.parse("26us/27us"), base=True)
    assert [(row["Operation"], row["Total Time (ns)"]) for row in found] == [
        ("gemm", 11_000),
        ("add", 10_000),
    ]
    with pytest.raises(MissingData, match=r"^does not contain GPU memory data in the selected part\.$"):
        stat(report, "cuda_gpu_mem_time_sum", Selection.parse("26us/27us"))


def test_a_window_has_what_was_launched_in_it(tmp_path: Path) -> None:
    report = drawn(tmp_path, f"windows |   [a            ][b             ]\n{PICTURE}")
    with report.window(1) as first, report.window(2) as second:
        found = [stat(window, "cuda_gpu_kern_sum", base=True) for window in (first, second)]
    # Of `add` no call is known.
    assert [[(row["Name"], row["Total Time (ns)"]) for row in each] for each in found] == [
        [("gemm", 11_000)],
        [("add", 10_000), ("gemm", 9_000)],
    ]


@pytest.mark.slow
def test_a_report_without_such_data_says_so(tmp_path: Path) -> None:
    report = drawn(tmp_path, "main |[step ]")
    for name, what in (
        ("cuda_api_sum", "CUDA trace data"),
        ("cuda_gpu_kern_sum", "CUDA kernel data"),
        ("cuda_gpu_kern_gb_sum", "CUDA kernel data"),
        ("cuda_gpu_mem_time_sum", "GPU memory data"),
        ("cuda_gpu_mem_size_sum", "GPU memory data"),
        ("cuda_gpu_sum", "CUDA kernel or GPU memory data"),
        ("cuda_api_gpu_sum", "CUDA trace data"),
    ):
        with pytest.raises(MissingData, match=rf"^does not contain {what}\.$"):
            stat(report, name)


@pytest.mark.slow
def test_arguments_are_spelled_as_nsys_does(tmp_path: Path) -> None:
    drawn(tmp_path)

    def call(*words: str) -> Result:
        return CliRunner().invoke(commands, ["stats", *words, str(tmp_path / "r")])

    lines = call("-f", "csv", "-q", "-r", "cuda_gpu_kern_sum:nvtx-name:base").stdout.splitlines()
    assert [line.rsplit(",", 1)[1] for line in lines] == ["Name", "lib:inner/gemm", "add", ":step/gemm"]
    for wrong in ("base=1", "nothing", "rows=3"):
        error = call("-r", f"cuda_gpu_kern_sum:{wrong}").exception
        assert isinstance(error, UsageError)
        assert f"no argument '{wrong}'; it takes: nvtx-name, base, mangled, by=…, all-gpus." in str(error)
    assert call("-r", "cuda_gpu_kern_sum:base", "-f", "csv", "-o", str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out_cuda_gpu_kern_sum_base.csv").exists()
    nsys = [
        "nvtx_sum",
        "cuda_api_sum",
        "cuda_gpu_kern_sum",
        "cuda_gpu_mem_time_sum",
        "cuda_gpu_mem_size_sum",
        "gpu_utilization",
    ]
    assert re.findall(r"^ \*\* .* \((\w+)\):$", call("--all").stdout, re.MULTILINE) == nsys
    few = re.findall(r"^ \*\* .* \((\w+)\):$", call().stdout, re.MULTILINE)
    assert few == [
        "nvtx_sum",
        "cuda_gpu_kern_sum",
        "gpu_utilization",
        "cuda_api_sum",
        "cuda_gpu_mem_time_sum",
    ]
