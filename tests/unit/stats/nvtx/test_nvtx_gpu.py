"""nvtx_gpu_proj_trace, nvtx_gpu_proj_sum and nvtx_kern_sum: drawn reports, and random ones against going through every pair."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from tests.unit.stats.asking import stat
from warplens.analysis.ranges import kernels as range_kernels
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
main       |[step                                ] [step             ] [alone ]
main@lib   |  [load              ]
w          |{async                      }
main:api   |   (cudaMemcpyAsync#1)(cudaLaunchKernel#2) (cudaLaunchKernel#3)
w:api      |  (cudaLaunchKernel#4)
gpu0.7     |                    (HtoD#1  )(gemm#2  )        (gemm#3     )
gpu0.8     |            (add#4  )       (lost  )
"""
KERNELS: dict[str, dict[str, Any]] = {"gemm": {"demangled": "void gemm<float>()", "mangled": "_Z4gemm"}}


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(tmp_path / "r.warplens", PICTURE, cuda=KERNELS)
    return open_report(tmp_path / "r.warplens")


def test_ranges_reach_from_their_first_operation_to_their_last(report: Report) -> None:
    found = stat(report, "nvtx_gpu_proj_trace")
    times = ["Projected Start (ns)", "Projected Duration (ns)", "Orig Start (ns)", "Orig Duration (ns)"]
    assert list(found[0]) == [
        "Name",
        *times,
        "Style",
        "PID",
        "TID",
        "NumGPUOps",
        "Lvl",
        "NumChild",
        "RangeId",
        "ParentId",
        "RangeStack",
    ]
    assert [
        (row["Name"], *(row[name] // 1000 for name in times), row["Style"], row["TID"], row["NumGPUOps"])
        for row in found
    ] == [
        (":async", 12, 9, 0, 29, "StartEnd", 1001, 1),
        (":step", 20, 20, 0, 38, "PushPop", 1000, 2),
        ("lib:load", 20, 10, 2, 20, "PushPop", 1000, 1),
        (":step", 48, 13, 39, 19, "PushPop", 1000, 1),
    ]
    step, load = found[1], found[2]
    assert [(row["Lvl"], row["NumChild"]) for row in found] == [(0, 0), (0, 1), (1, 0), (0, 0)]
    assert (load["ParentId"], load["RangeStack"]) == (
        step["RangeId"],
        f":{step['RangeId']}:{load['RangeId']}",
    )
    assert step["ParentId"] is None


def test_a_filter_keeps_ranges_with_all_their_operations(report: Report) -> None:
    found = stat(report, "nvtx_gpu_proj_trace", Selection.parse("45us/46us"))
    assert [(row["Name"], row["NumGPUOps"]) for row in found] == [(":step", 1)]
    with pytest.raises(
        MissingData,
        match=r"^does not contain GPU work that was launched in NVTX ranges in the selected part\.$",
    ):
        stat(report, "nvtx_gpu_proj_trace", Selection.parse("60us/"))


def test_projections_are_summed_by_name(report: Report) -> None:
    found = stat(report, "nvtx_gpu_proj_sum")
    figures = [f"Proj {name} (ns)" for name in ("Avg", "Med", "Min", "Max", "StdDev")]
    counts = ["Total GPU Ops", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child"]
    assert list(found[0]) == [
        "Range",
        "Style",
        "Total Proj Time (ns)",
        "Total Range Time (ns)",
        "Range Instances",
        *figures,
        *counts,
    ]
    assert [
        (row["Range"], row["Style"], row["Total Proj Time (ns)"], row["Range Instances"]) for row in found
    ] == [
        (":step", "PushPop", 33_000, 2),
        ("lib:load", "PushPop", 10_000, 1),
        (":async", "StartEnd", 9_000, 1),
    ]
    step = found[0]
    assert [step[name] for name in figures[:4]] == [16_500, 16_500, 13_000, 20_000]
    assert step["Proj StdDev (ns)"] == pytest.approx(statistics.stdev([13_000, 20_000]))
    assert (step["Total Range Time (ns)"], *(step[name] for name in counts)) == (57_000, 3, 1.5, 0.0, 0.5)


def test_kernels_count_in_every_range_around_their_launch(report: Report) -> None:
    found = stat(report, "nvtx_kern_sum")
    figures = ["Total Time (ns)", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
    assert list(found[0]) == [
        "NVTX Range",
        "Style",
        "PID",
        "TID",
        "NVTX Inst",
        "Kern Inst",
        *figures,
        "Kernel Name",
    ]
    assert [
        (
            row["NVTX Range"],
            row["TID"],
            row["NVTX Inst"],
            row["Kern Inst"],
            row["Total Time (ns)"],
            row["Kernel Name"],
        )
        for row in found
    ] == [
        (":step", 1000, 2, 2, 23_000, "void gemm<float>()"),
        (":async", 1001, 1, 1, 9_000, "add"),
    ]
    assert [row["Kernel Name"] for row in stat(report, "nvtx_kern_sum", base=True)] == ["gemm", "add"]
    assert [row["Kernel Name"] for row in stat(report, "nvtx_kern_sum", mangled=True)] == ["_Z4gemm", "add"]


def test_ranges_that_cross_threads_contain_nothing(tmp_path: Path) -> None:
    picture = "main |{across }\nw |!x\nmain:api | (cudaLaunchKernel#1)\ngpu0.7 |   (gemm#1)"
    timeline(tmp_path / "r.warplens", picture, extra={"across": {"end_thread": 1}})
    with pytest.raises(MissingData, match=r"^does not contain kernels that were launched in NVTX ranges\.$"):
        stat(open_report(tmp_path / "r.warplens"), "nvtx_kern_sum")


def test_a_report_without_such_data_says_what_it_lacks(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    plain = open_report(tmp_path / "r.warplens")
    for name in ("nvtx_gpu_proj_trace", "nvtx_gpu_proj_sum"):
        with pytest.raises(MissingData, match=r"^does not contain CUDA trace and CUDA GPU data\.$"):
            stat(plain, name)
    with pytest.raises(MissingData, match=r"^does not contain CUDA trace and CUDA kernel data\.$"):
        stat(plain, "nvtx_kern_sum")
    timeline(tmp_path / "s.warplens", "main:api |(cudaLaunchKernel#1)\ngpu0.7 |(gemm#1)")
    with pytest.raises(MissingData, match=r"^does not contain NVTX data\.$"):
        stat(open_report(tmp_path / "s.warplens"), "nvtx_gpu_proj_sum")


TIMES = st.integers(0, 60)
RANGE = st.tuples(st.integers(0, 2), TIMES, TIMES, st.sampled_from(["a", "b"]), st.sampled_from([None, 0, 1]))
LAUNCH = st.tuples(
    st.integers(0, 2), TIMES, st.integers(60, 99), st.integers(0, 9), st.sampled_from(["k", "l"])
)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(RANGE, max_size=25), st.lists(LAUNCH, min_size=1, max_size=25))
def test_every_pair_of_range_and_launch_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    ranges: list[tuple[int, int, int, str, int | None]],
    launches: list[tuple[int, int, int, int, str]],
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "r.warplens"
    ranges = sorted((thread, min(a, b), max(a, b), name, ended) for thread, a, b, name, ended in ranges)
    launches = sorted(launches, key=lambda launch: launch[1])
    sizes = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
    kernel = {
        "device": 0,
        "context": 1,
        "stream": 7,
        "registers": 1,
        "static_shared": 0,
        "dynamic_shared": 0,
        **sizes,
    }
    flags = {
        "process": 0,
        "style": "StartEnd",
        "depth": 0,
        "unfinished": False,
        "inherited": False,
        "clipped": False,
    }
    tables: dict[str, list[dict[str, Any]]] = {
        "nvtx_ranges": [
            {
                **flags,
                "id": n,
                "thread": thread,
                "start": start,
                "end": end,
                "message": name,
                "end_thread": ended,
            }
            for n, (thread, start, end, name, ended) in enumerate(sorted(ranges, key=lambda one: one[1]))
        ],
        "cuda_api": [
            {
                "id": n,
                "process": 0,
                "thread": t,
                "start": s,
                "end": s + 1,
                "api": "driver",
                "name": "l",
                "result": 0,
                "correlation": n,
            }
            for n, (t, s, _, _, _) in enumerate(launches)
        ],
        "kernels": [
            {
                **kernel,
                "id": n,
                "process": 0,
                "start": s,
                "end": s + long,
                "name": name,
                "demangled": name,
                "api": n,
            }
            for n, (_, _, s, long, name) in enumerate(launches)
        ],
    }
    timeline(path, "main |!x", origin=0, tables=tables)
    projected, summed = [], defaultdict(list)
    for thread, start, end, name, ended in ranges:
        mine = (
            [one for one in launches if one[0] == thread and start <= one[1] < end]
            if ended in (None, thread)
            else []
        )
        if mine:
            first, last = min(one[2] for one in mine), max(one[2] + one[3] for one in mine)
            projected.append((first, last - first, start, f":{name}", len(mine)))
        for _, _, _, long, kernel_name in mine:
            summed[f":{name}", thread, kernel_name].append(long)
    report = open_report(path)
    if not projected:
        with pytest.raises(MissingData):
            stat(report, "nvtx_gpu_proj_trace")
        return
    columns = ("Projected Start (ns)", "Projected Duration (ns)", "Orig Start (ns)", "Name", "NumGPUOps")
    assert sorted(
        tuple(row[name] for name in columns) for row in stat(report, "nvtx_gpu_proj_trace")
    ) == sorted(projected)
    found = range_kernels.range_kernels(report, Selection(), "base").to_pylist()
    assert {
        (f":{row['message']}", row["thread"], row["kernel"]): (row["count"], row["total"], row["median"])
        for row in found
    } == {key: (len(values), sum(values), statistics.median(values)) for key, values in summed.items()}
    for row in found:
        key = (row["message"], row["thread"])
        around = [
            (start, end)
            for thread, start, end, name, ended in ranges
            if (name, thread) == key and ended in (None, thread)
        ]
        times = [one[1] for one in launches if (one[0], one[4]) == (row["thread"], row["kernel"])]
        assert row["ranges"] == sum(any(start <= time < end for time in times) for start, end in around)


def test_pairs_are_gone_through_in_pieces(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stat(report, "nvtx_kern_sum")
    monkeypatch.setattr(range_kernels, "_AT_ONCE", 1)
    assert stat(report, "nvtx_kern_sum") == whole
