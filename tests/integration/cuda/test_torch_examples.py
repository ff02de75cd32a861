"""The programs of examples/torch_mistakes run, with their mistake and without, and say in ranges where they are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.optional_dependencies import LIBRARIES, find_library
from warplens.report.report import open as open_report

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "torch_mistakes"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "common")
STEPS = 3

pytestmark = [pytest.mark.require("native", "torch-cuda")]


@pytest.mark.parametrize("words", [[], ["--fix"]], ids=["mistake", "fix"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_and_says_where_it_is(tmp_path: Path, name: str, words: list[str]) -> None:
    found = find_library(LIBRARIES["torch-cuda"])
    assert found is not None
    program = [found[0], str(EXAMPLES / f"{name}.py"), "--steps", str(STEPS), "--batch", "8", *words]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "warplens",
            "profile",
            "--light",
            "-q",
            "-o",
            str(tmp_path / "run"),
            "--",
            *program,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "steps/s on " in done.stdout
    with open_report(tmp_path / "run.warplens") as report:
        counts = Counter(report.table("nvtx_ranges", ["message"]).column("message").to_pylist())
    # the graph of the fixed one is captured from warmed-up steps, and replays have no ranges of their own
    assert {key: counts[key] for key in ("step", "load", "train")} == dict.fromkeys(
        ("step", "load", "train"), STEPS + 1
    )
    assert counts["forward"] >= 1


def test_each_program_is_explained() -> None:
    told = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert PROGRAMS
    assert all(f"`{name}.py`" in told for name in PROGRAMS)
