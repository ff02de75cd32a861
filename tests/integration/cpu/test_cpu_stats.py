"""The stats of the CPU side on recordings of real programs: what they are known to do is in the tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import warplens

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cpu_mistakes"
PROGRAM = """
import gc, sys, time
from warplens import nvtx

def busy():
    total = 0
    for number in range(20000):
        total += number * number % 7
    return total

class Node:
    pass

def tidy():
    node = Node()
    node.node = node
    del node
    gc.collect()

def load(path):
    with open(path, "rb") as file:
        return file.read()

with nvtx.annotate("work"):
    until = time.process_time() + 0.5
    while time.process_time() < until:
        busy()
with nvtx.annotate("tidy"):
    for _ in range(3):
        tidy()
for _ in range(5):
    with nvtx.annotate("load"):
        load(sys.argv[1])
"""
Row = dict[str, Any]


def stat(report: Path, name: str, *words: str) -> list[Row]:
    done = warplens("stats", "-q", "-f", "json", "-r", name, *words, report, cwd=report.parent)
    assert done.returncode == 0, done.stderr
    found: list[Row] = json.loads(done.stdout)
    return found


def recorded(folder: Path, trace: str, *command: str | Path, options: tuple[str, ...] = ()) -> Path:
    words = ("-q", "-t", trace, *options, "-o", "r", sys.executable, *command)
    done = warplens("profile", "-q", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "r.warplens"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "data.bin").write_bytes(b"x" * 100_000)
    sampling = ("--osrt-file-access=true", "--sample=process-tree", "--python-sampling=true")
    return recorded(folder, "nvtx,osrt,gc,gil", folder / "program.py", folder / "data.bin", options=sampling)


def test_collections(report: Path) -> None:
    found = {row["Generation"]: row for row in stat(report, "gc_sum", "--filter-nvtx", "tidy")}
    assert found[2]["Collections"] == 3
    assert found[2]["Collected"] >= 3
    assert stat(report, "gc_sum")[0]["Total Time (ns)"] > 0


def test_files(report: Path) -> None:
    (row,) = [row for row in stat(report, "file_access_sum") if row["File"].endswith("data.bin")]
    assert row["Opens"] == 5
    assert row["Reads"] >= 5
    assert row["Read (MB)"] == 0.5
    (row,) = [
        row
        for row in stat(report, "file_access_sum", "--filter-nvtx", "load/1")
        if row["File"].endswith("data.bin")
    ]
    assert (row["Opens"], row["Read (MB)"]) == (1, 0.1)


def test_calls(report: Path) -> None:
    everything = stat(report, "osrt_sum")
    assert {row["Name"] for row in everything} >= {"read", "close"}
    (read,) = [row for row in stat(report, "osrt_sum", "--filter-nvtx", "load") if row["Name"] == "read"]
    assert 5 <= read["Num Calls"] < sum(row["Num Calls"] for row in everything)
    by_target = [
        row
        for row in stat(report, "osrt_sum:by=target")
        if row["Name"] == "read" and row["Target"].endswith("data.bin")
    ]
    assert by_target[0]["Num Calls"] == read["Num Calls"]
    trace = stat(report, "osrt_trace")
    assert len(trace) == sum(row["Num Calls"] for row in everything)
    assert sum(row["Duration (ns)"] for row in trace) == sum(row["Total Time (ns)"] for row in everything)


def test_hotspots(report: Path) -> None:
    found = {row["Name"]: row for row in stat(report, "cpu_hotspots:kind=python", "--filter-nvtx", "work")}
    assert max(found.values(), key=lambda row: row["Self (ns)"])["Name"] == "busy"
    assert "load" not in found
    assert found["busy"]["Where"].endswith("program.py:5")
    tree = [
        row["Name"]
        for row in stat(
            report, "cpu_hotspots:kind=python:tree=top-down:min-percent=0", "--filter-nvtx", "work"
        )
    ]
    assert tree[:2] == ["<module>", "  busy"]


def test_the_thread_that_keeps_the_gil_is_named(tmp_path: Path) -> None:
    report = recorded(tmp_path, "nvtx,gil", EXAMPLES / "gil_hog.py", "--items", "20")
    simulator = {row["TID"] for row in stat(report, "nvtx_pushpop_trace") if row["Name"] == ":simulate"}
    assert len(simulator) == 1
    (hog,) = simulator
    waiting = [row for row in stat(report, "gil_sum:by=pair") if f"({hog})" in row["Held By"]]
    assert waiting
    assert waiting[0]["Total Time (ns)"] > 0
    (row,) = [row for row in stat(report, "gil_sum") if row["TID"] == hog]
    assert row["Others Waited (ns)"] == sum(row["Total Time (ns)"] for row in waiting)
    inside = [row for row in stat(report, "gil_sum", "--filter-nvtx", "request") if row["TID"] != hog]
    assert any(row["Waits"] and f"({hog})" in (row["Waited Most For"] or "") for row in inside)


def test_waiting_for_one_lock(tmp_path: Path) -> None:
    report = recorded(tmp_path, "osrt", EXAMPLES / "lock_convoy.py")
    locks = [row for row in stat(report, "osrt_sum:by=object") if row["Object"].startswith("0x")]
    assert max(row["Num Calls"] for row in locks) > 1  # one lock for all threads
