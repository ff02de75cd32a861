"""`warplens profile` and programs that use CUDA: how the agent gets in, what stays out of its way, what the launcher adds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import SOURCES
from tests.support.native.fake_cuda import FakeCuda
from tests.support.native.fake_nvml import fake_nvml
from tests.support.programs.launching import environment, warplens
from tests.support.thorough import few
from warplens.report import Report
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native", "gcc")
Record = Callable[..., Report]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a program that uses CUDA, and another tool for it."""
    folder = tmp_path_factory.mktemp("programs")
    words = FakeCuda().words()
    subprocess.run(
        ["gcc", "-O1", SOURCES / "cuda" / "cuda_program.c", *words, "-o", folder / "program", "-pthread"],
        check=True,
    )
    subprocess.run(
        [
            "gcc",
            "-O1",
            "-shared",
            "-fPIC",
            SOURCES / "cuda" / "cuda_tool.c",
            "-o",
            folder / "tool.so",
            "-ldl",
        ],
        check=True,
    )
    return folder


@pytest.fixture
def record(programs: Path, tmp_path: Path) -> Record:
    """Profile the program with options and its script; return the report."""

    def run(
        options: str, script: str, before: tuple[str, ...] = (), version: str = "13.0", **variables: str
    ) -> Report:
        fake = FakeCuda(version)
        found = {**environment(**fake.environment(TRUTH="/dev/null")), **variables}
        found["LD_LIBRARY_PATH"] = ":".join(
            filter(None, (variables.get("LD_LIBRARY_PATH"), str(fake.folder)))
        )
        command = [
            "profile",
            "--light",
            "-q",
            "-f",
            "-o",
            "x",
            *options.split(),
            *before,
            str(programs / "program"),
            *script.split(),
        ]
        done = warplens(*command, cwd=tmp_path, env=found)
        assert done.returncode == 0, done.stderr
        return open_report(tmp_path / "x.warplens")

    return run


def _kernels(report: Report) -> dict[str, int]:
    return {
        row["name"]: row["n"]
        for row in report.sql("SELECT name, count(*) AS n FROM kernels GROUP BY 1 ORDER BY 1").to_pylist()
    }


def _codes(report: Report) -> list[str]:
    return [row["code"] for row in report.table("diagnostics").to_pylist()]


def test_cuda_is_recorded_without_a_word(record: Record, tmp_path: Path) -> None:
    library = FakeCuda().folder
    # a program that starts others without their variables
    report = record(
        "",
        "kernel:a:5000:1:3 h2d:1000:1 sync:1",
        ("/usr/bin/env", "-i", f"LD_LIBRARY_PATH={library}", "TRUTH=/dev/null"),
    )
    assert _kernels(report) == {"a": 3}
    assert report.sql("SELECT count(*) AS n FROM memcpys").to_pylist() == [{"n": 1}]
    assert "cuda-recorded" in _codes(report)


def test_cuda_is_left_alone_where_it_is_not_traced(record: Record) -> None:
    report = record("-t nvtx", "kernel:a:5000:1:3 sync:1")
    assert _kernels(report) == {}
    assert "cuda-recorded" not in _codes(report)


_RANGES = (
    "kernel:before:5000:1 start kernel:first:2000000:1:3 stop kernel:between:5000:1 "
    "start kernel:second:5000:1:2 stop kernel:after:5000:1 device_sync"
)


@pytest.mark.parametrize(
    ("options", "version", "kernels", "gated"),
    [
        ("-c cudaProfilerApi", "13.0", {"first": 3}, False),
        ("-c cudaProfilerApi --capture-range-end=repeat", "13.0", {"first": 3, "second": 2}, True),
        ("-c cudaProfilerApi --capture-range-end=repeat", "13.4", {"first": 3, "second": 2}, False),
    ],
)
def test_work_counts_that_was_launched_in_a_range(
    options: str, version: str, kernels: dict[str, int], gated: bool, record: Record
) -> None:
    report = record(options, _RANGES, version=version)
    assert _kernels(report) == kernels
    windows: list[dict[str, Any]] = report.sql('SELECT "end" FROM capture_windows ORDER BY 1').to_pylist()
    assert len(windows) == len(kernels)
    last = report.sql('SELECT max("end") AS "end" FROM kernels WHERE name = \'first\'').to_pylist()[0]["end"]
    assert last > windows[0]["end"]  # they ran after the range that launched them
    assert ("cupti-gated" in _codes(report)) == gated


@pytest.mark.parametrize("taken", [False, True])
def test_another_tool_is_started_first_and_keeps_what_it_had(
    taken: bool, record: Record, programs: Path, tmp_path: Path
) -> None:
    """Where CUPTI serves one tool only, that is it, and the report says so."""
    cupti = {"TOOL_CUPTI": str(FakeCuda().cupti)} if taken else {}
    log = tmp_path / "log"
    report = record(
        "",
        "kernel:a:5000:1:3 sync:1",
        CUDA_INJECTION64_PATH=str(programs / "tool.so"),
        TOOL_LOG=str(log),
        **cupti,
    )
    assert log.read_text() == ("started 0\n" if taken else "started -1\n")
    assert _kernels(report) == ({} if taken else {"a": 3})
    assert "cuda-tool" in _codes(report)
    assert ("cupti-busy" in _codes(report)) == taken


def test_the_cupti_that_was_named_is_used_and_no_other(record: Record, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "libcupti.so.12").write_text("no library")
    nothing = record(f"--cupti={folder}", "kernel:a:5000:1 sync:1")
    assert _kernels(nothing) == {}
    [row] = [row for row in nothing.table("diagnostics").to_pylist() if row["severity"] == "warning"]
    assert str(folder) in row["message"]
    (folder / "libcupti.so.13").symlink_to(FakeCuda().cupti)  # in a folder, the newest counts
    assert _kernels(record(f"--cupti={folder}", "kernel:a:5000:1 sync:1")) == {"a": 1}


def test_the_gpus_are_sampled_in_the_windows(record: Record, tmp_path: Path) -> None:
    folder = tmp_path / "nvml"
    folder.mkdir()
    report = record(
        "--gpu-metrics-frequency=100 -c cudaProfilerApi",
        "sleep:100 start kernel:a:5000:1 sleep:200 stop sleep:100",
        **fake_nvml(folder),
    )
    found = report.sql(
        """SELECT metric, unit, gpu, min(value) AS low, count(*) > 3 AS many,
                  bool_and(start BETWEEN (SELECT start FROM capture_windows) AND (SELECT "end" FROM capture_windows)) AS inside
           FROM gpu_metrics WHERE metric IN ('Power', 'GPU Utilization') GROUP BY ALL ORDER BY 1, 3"""
    ).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("GPU Utilization", "%", 0, 40.0, True, True),
        ("GPU Utilization", "%", 1, 41.0, True, True),
        ("Power", "W", 0, 500.5, True, True),
        ("Power", "W", 1, 500.5, True, True),
    ]


_ITSELF = """
import ctypes, os, subprocess, sys, warplens
driver = ctypes.CDLL("libcuda.so.1")
def kernel(name):
    function = ctypes.c_void_p()
    assert driver.cuModuleGetFunction(ctypes.byref(function), None, name) == 0
    assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
    assert driver.cuCtxSynchronize() == 0
def use():
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
early = sys.argv[1] == "early"
if early:
    use()
    kernel(b"before@5000")
with warplens.record("x", force=True, wait=True):
    if not early:
        use()
    kernel(b"inside@5000")
    subprocess.run([sys.argv[2], "kernel:child:5000:1", "sync:1"], check=True)
kernel(b"after@5000")
print("CUDA_INJECTION64_PATH" in os.environ)
"""


@pytest.mark.parametrize("when", few(["early", "late"]))
def test_a_program_that_records_itself_records_its_cuda_too(
    when: str, programs: Path, tmp_path: Path
) -> None:
    (tmp_path / "p.py").write_text(_ITSELF)
    env = environment(**FakeCuda().environment(TRUTH="/dev/null"))
    command = [sys.executable, "p.py", when, str(programs / "program")]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    report = open_report(tmp_path / "x.warplens")
    assert _kernels(report) == {"child": 1, "inside": 1}
    assert ("cupti-converted" in _codes(report)) == (when == "early")


@pytest.mark.parametrize(
    "options",
    few(["-c cudaProfilerApi --capture-range-end=stop-shutdown", "--duration 1 --cuda-flush-interval 20000"]),
)
def test_a_program_that_is_killed_after_its_window_loses_nothing_of_it(
    programs: Path, tmp_path: Path, options: str
) -> None:
    script = [
        "kernel:warm:1000:1",
        "sync:1",
        "start",
        "kernel:within:1000:1:7",
        "sync:1",
        "stop",
        "sleep:20000",
    ]
    command = [
        "profile",
        "--light",
        "-q",
        "-o",
        "x",
        *options.split(),
        "--kill",
        "sigterm",
        str(programs / "program"),
        *script,
    ]
    done = warplens(*command, cwd=tmp_path, env=environment(**FakeCuda().environment(TRUTH="/dev/null")))
    assert done.returncode == 143, done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        assert _kernels(report)["within"] == 7
