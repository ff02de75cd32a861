"""Programs in C and C++ that record inside kernels: no Python in them, buffers filled on the CPU, `warplens profile` around them."""

from __future__ import annotations

import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.optional_dependencies import ROOT
from tests.support.programs.launching import environment, warplens
from warplens.report import Report
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("gcc", "g++", "native"), pytest.mark.timeout(300)]
TARGETS = ROOT / "tests" / "targets" / "intrakernel"
C = ("gcc", "-std=c99", "-D_GNU_SOURCE", "-pedantic", "-O1")
CPP = ("g++", "-std=c++17", "-O1")


def built(out: Path, source: str, *words: str) -> Path:
    checks = ("-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'native' / 'device'}")
    subprocess.run([*words, *checks, TARGETS / source, "-o", out, "-ldl"], check=True)
    return out


def profiled(folder: Path, *command: str | Path) -> tuple[str, Report]:
    done = warplens(
        "profile", "-q", "-f", "-o", "x", "--stats=false", *command, cwd=folder, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, open_report(folder / "x.warplens")


def test_a_program_in_c(tmp_path: Path) -> None:
    """Launch after launch into one buffer, each stored before the next."""
    said, report = profiled(tmp_path, built(tmp_path / "program", "intrakernel_regions.c", *C), "5")
    assert said == "recorded, 5 launches\n"
    with report:
        launches = report.table("intrakernel_launches").sort_by("generation").to_pylist()
        events, units = (
            report.table("intrakernel_events").to_pylist(),
            report.table("intrakernel_units").to_pylist(),
        )
    assert [(row["name"], row["generation"]) for row in launches] == [
        (f"step {number}", number) for number in range(1, 6)
    ]
    assert {
        (row["buffer_name"], row["mode"], row["slots"], row["dropped"], row["stored"]) for row in launches
    } == {("by hand", "slices", 8, 0, True)}
    assert {row["merged"] for row in launches} <= {"host", "bracket"}
    assert [(row["units"], row["events"], row["unended"]) for row in launches] == [(4, 12, 0)] * 5
    assert Counter((row["tag"], row["payload"]) for row in events) == {
        (tag, unit): 5 for tag in ("load", "multiply", "store") for unit in range(4)
    }
    spans = {row["id"]: row for row in units}
    assert all(
        spans[row["unit"]]["start"] <= row["start"] <= row["end"] <= spans[row["unit"]]["end"]
        for row in events
    )
    for earlier, later in pairwise(launches):
        assert earlier["launched"] <= later["launched"]
        assert earlier["end"] <= later["start"] + later["uncertainty"] + earlier["uncertainty"]


def test_a_kernel_of_cuda_cpp_on_the_cpu(tmp_path: Path) -> None:
    said, report = profiled(tmp_path, built(tmp_path / "program", "intrakernel_kernel.cpp", *CPP))
    assert said == "374\n"
    with report:
        (launch,) = report.table("intrakernel_launches").to_pylist()
        events, units = (
            report.table("intrakernel_events").to_pylist(),
            report.table("intrakernel_units").to_pylist(),
        )
    assert (launch["name"], launch["units"], launch["events"], launch["dropped"]) == ("tiles", 4, 4 * 13, 0)
    assert sorted((row["cta"], row["warp"], row["ended"]) for row in units) == [
        (cta, warp, True) for cta in (0, 1) for warp in (0, 1)
    ]
    assert Counter((row["tag"], row["kind"]) for row in events) == {
        **{(tag, "region"): 16 for tag in ("tile", "load", "multiply")},
        ("done", "mark"): 4,
    }
    assert Counter(row["payload"] for row in events if row["tag"] == "tile") == dict.fromkeys(range(4), 4)


def test_without_a_recording_nothing_is_recorded(tmp_path: Path) -> None:
    program = built(tmp_path / "program", "intrakernel_regions.c", *C)
    done = subprocess.run(
        [program, "2"], capture_output=True, text=True, check=True, env=environment(), timeout=120
    )
    assert done.stdout == "not recorded, 0 launches\n"
