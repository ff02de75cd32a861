"""What Python's own sampling profiler (3.15 and later) recorded is what its own reader says."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import warplens
from tests.support.programs.python_running import interpreters, version_of
from warplens.importers.importing import import_file

pytestmark = pytest.mark.timeout(120)
each_new_python = pytest.mark.parametrize(
    "python", [python for python in interpreters() if version_of(python) >= (3, 15)]
)
OWN = ("_sync_coordinator.py", "<frozen runpy>")  # files of the profiler, which only its reader leaves out
PROGRAM = """
import threading, time
def leaf(n):
    return sum(i * i for i in range(n))
def fails():
    try:
        raise ValueError
    except ValueError:
        leaf(20000)
def worker():
    while time.monotonic() < END:
        time.sleep(0.005)
        leaf(10000)
END = time.monotonic() + 1.0
thread = threading.Thread(target=worker)
thread.start()
while time.monotonic() < END:
    leaf(20000)
    fails()
thread.join()
"""


def profiler(python: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "profiling.sampling", *map(str, words)], capture_output=True, text=True, check=False
    )


def imported(path: Path) -> dict[str, list[dict[str, Any]]]:
    report = path.with_name(f"{path.name}.warplens")
    import_file(path, report)
    with warplens.open(report) as opened:
        return {name: opened.table(name).to_pylist() for name in ("frames", "samples", "threads")}


def stacks(tables: dict[str, list[dict[str, Any]]]) -> Counter[tuple[Any, ...]]:
    """How many samples a thread has of each stack: file names without folders, functions, lines."""
    frames = {row["frame"]: row for row in tables["frames"]}
    tids = {row["thread"]: row["tid"] for row in tables["threads"]}
    found: Counter[tuple[Any, ...]] = Counter()
    for row in tables["samples"]:
        names: list[tuple[str, str, int]] = []
        frame = row["stack"]
        while frame is not None:
            at = frames[frame]
            names.append(((at["file"] or "~").rpartition("/")[2], at["function"], at["line"] or 0))
            frame = at["parent"]
        found[(tids[row["thread"]], *(name for name in reversed(names) if name[0] not in OWN))] += row[
            "count"
        ]
    return found


@each_new_python
@pytest.mark.parametrize("mode", ["wall", "cpu"])
def test_a_recording_holds_what_its_own_reader_says(mode: str, python: str, tmp_path: Path) -> None:
    program, binary, text = tmp_path / "program.py", tmp_path / "run.bin", tmp_path / "run.collapsed"
    program.write_text(PROGRAM, encoding="utf-8")
    done = profiler(python, "run", "-a", "--mode", mode, "--binary", "-o", binary, program)
    if "ermission" in done.stderr:
        pytest.skip("it may not read the memory of its child here")
    assert done.returncode == 0, done.stderr
    assert profiler(python, "replay", "--collapsed", "-o", text, binary).returncode == 0
    tables = imported(binary)
    assert stacks(tables) == stacks(imported(text))
    handled = [row for row in tables["samples"] if row["exception"]]
    assert 0 < sum(row["count"] for row in handled) < sum(row["count"] for row in tables["samples"])
    assert {row["name"] for row in tables["threads"]} == {"main", None}


@each_new_python
def test_its_pstats_are_read_with_their_samples(python: str, tmp_path: Path) -> None:
    program, stats = tmp_path / "program.py", tmp_path / "run.pstats"
    program.write_text(PROGRAM, encoding="utf-8")
    done = profiler(python, "run", "-a", "--pstats", "-o", stats, program)
    if "ermission" in done.stderr:
        pytest.skip("it may not read the memory of its child here")
    assert done.returncode == 0, done.stderr
    tables = imported(stats)
    assert sum(row["count"] for row in tables["samples"]) > 100
    assert {"leaf", "fails", "worker"} <= {row["function"] for row in tables["frames"]}
    assert all(row["first_line"] is None for row in tables["frames"])
