"""`python -m warplens.intrakernel.example` in every language: it checks what was recorded by itself, and these look at the trace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dsl.languages import interpreter
from tests.support.optional_dependencies import ROOT
from tests.support.programs.launching import environment
from warplens.intrakernel.dsl import EXAMPLE_GRID, EXAMPLE_TILES

MODULE = "warplens.intrakernel.example"


def example(python: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    env = environment(PYTHONPATH=str(ROOT / "src"))
    return subprocess.run(
        [python, "-m", MODULE, *map(str, words)],
        env=env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def check(path: Path, language: str) -> None:
    """The trace has a row for each warp, and on it tiles with a load, a compute and a store each."""
    trace = json.loads(path.read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    (process,) = (event["args"]["name"] for event in events if event["name"] == "process_name")
    assert language in process
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert len(rows) % EXAMPLE_GRID == 0
    for tid in rows:
        of_row = sorted(
            (event for event in events if event["ph"] == "X" and event["tid"] == tid),
            key=lambda event: (event["ts"], -event["dur"]),
        )
        assert sorted(event["name"] for event in of_row) == sorted(
            ["tile", "load", "compute", "store"] * EXAMPLE_TILES
        )
        assert [event["args"]["payload"] for event in of_row if event["name"] == "load"] == list(
            range(EXAMPLE_TILES)
        )
        assert [event["name"] for event in events if event["ph"] == "i" and event["tid"] == tid] == ["done"]
    assert "otherData" not in trace


@pytest.mark.parametrize(
    ("language", "piece"),
    [
        pytest.param("triton", "triton", marks=pytest.mark.require("triton")),
        pytest.param("numba", "numba-cuda", marks=pytest.mark.require("numba-cuda")),
    ],
)
def test_a_language_runs_the_example_without_a_gpu(language: str, piece: str, tmp_path: Path) -> None:
    done = example(interpreter(piece), "--dsl", language, "--out", tmp_path / "trace.json")
    assert done.returncode == 0, done.stderr
    check(tmp_path / "trace.json", language)


@pytest.mark.require("gcc")
def test_the_best_language_that_is_here_runs_the_example(tmp_path: Path) -> None:
    """At least the header for C++, with the compiler of the host."""
    done = example(sys.executable, "--out", tmp_path / "trace.json")
    assert done.returncode == 0, done.stderr
    check(tmp_path / "trace.json", done.stdout.partition(" ")[0])


def test_a_language_that_is_not_here_says_what_is_missing(tmp_path: Path) -> None:
    words = ["--dsl", "triton", "--out", str(tmp_path / "trace.json")]
    program = f"""
import runpy, sys
sys.path.insert(0, {str(ROOT / "src")!r})
sys.argv[1:] = {words!r}
runpy.run_module({MODULE!r}, run_name="__main__")
"""
    command = [sys.executable, "-I", "-S", "-c", program]  # without site-packages
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "triton" in done.stderr
    assert "not installed" in done.stderr or "No module named" in done.stderr
    assert not (tmp_path / "trace.json").exists()


def test_a_language_that_nobody_knows_is_refused() -> None:
    done = example(sys.executable, "--dsl", "fortran")
    assert done.returncode == 2
    assert "invalid choice" in done.stderr
