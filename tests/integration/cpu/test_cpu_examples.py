"""The programs of examples/cpu_mistakes: each mistake is in the tables, in the stats and in the terminal timeline; each is fixable."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import environment
from tests.support.thorough import few
from warplens.report import open as open_report

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "cpu_mistakes"
PROGRAMS = {
    "lock_convoy": (["--items", "24"], "24 digests"),
    "gil_hog": ([], "requests, the longest took"),
    "gc_pause": (["--items", "20", "--objects", "300000"], "20 requests beside 300000 objects"),
    "slow_reader": ([], "30 steps"),
    "blocked_socket": ([], "20 answers"),
}
# The stat, what stands in it, and the row of the timeline.
SHOWN = {
    "lock_convoy": ("osrt_sum", r"sem_|pthread_|futex", "OS calls"),
    "gil_hog": ("gil_sum", r"\d", "GIL"),
    "gc_pause": ("gc_sum", r"\s2\s*$", "GC"),
    "slow_reader": ("osrt_trace", r"dataset", "OS calls"),
    "blocked_socket": ("osrt_sum", r"\brecv\b", "OS calls"),
}
_THE_CALL = 50_000_000  # ns, what gil_hog sleeps in C with the GIL

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]


def warplens(*words: str) -> str:
    command = [sys.executable, "-m", "warplens", *words]
    done = subprocess.run(
        command, env=environment(COLUMNS="120"), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def profile(out: Path, name: str, *words: str) -> str:
    options = ("-t", "nvtx,osrt,gc,gil", "--sample=process-tree", "--python-sampling=true")
    return warplens(
        "profile",
        "--light",
        "-q",
        "-o",
        str(out),
        *options,
        "--",
        sys.executable,
        str(EXAMPLES / f"{name}.py"),
        *PROGRAMS[name][0],
        *words,
    )


def rows(report: Any, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report.sql(text).to_pylist()
    return found


def found(name: str, report: Any) -> bool:
    """Whether the mistake is in the tables."""
    if name == "lock_convoy":  # threads wait for the lock within their ranges
        return bool(rows(report, "SELECT 1 FROM osrt WHERE \"group\" = 'lock' AND range IS NOT NULL"))
    if name == "gil_hog":
        return bool(
            rows(report, f"SELECT 1 FROM gil WHERE state = 'hold' AND \"end\" - start >= {_THE_CALL}")
        )
    if name == "gc_pause":
        (pauses,) = rows(
            report, 'SELECT count(*) AS n, max("end" - start) AS longest FROM gc WHERE generation = 2'
        )
        return bool(pauses["n"] >= 2 and pauses["longest"] > 0)
    if name == "slow_reader":
        return bool(
            rows(report, "SELECT 1 FROM osrt WHERE name = 'read' AND target LIKE '%dataset' AND bytes > 0")
        )
    return bool(
        rows(report, "SELECT 1 FROM osrt WHERE name = 'recv' AND \"group\" = 'socket' AND range IS NOT NULL")
    )


@pytest.mark.parametrize("name", few(PROGRAMS, 2))
def test_the_mistake_is_seen(name: str, tmp_path: Path) -> None:
    assert PROGRAMS[name][1] in profile(tmp_path / "run", name)
    with open_report(tmp_path / "run.warplens") as report:
        assert found(name, report), {table: count for table, count in report.tables.items() if count}
    stat, text, row = SHOWN[name]
    assert re.search(
        text, warplens("stats", "--rows", "0", "-r", stat, str(tmp_path / "run")), flags=re.MULTILINE
    )
    drawn = warplens("timeline", "--width", "120", str(tmp_path / "run")).splitlines()
    assert any(line.strip().startswith(row) and line.replace(row, "").strip() for line in drawn), "\n".join(
        drawn
    )


@pytest.mark.parametrize("name", few(PROGRAMS))
def test_the_fix_does_the_same_work(name: str, tmp_path: Path) -> None:
    assert PROGRAMS[name][1] in profile(tmp_path / "run", name, "--fix")


def test_each_program_is_explained() -> None:
    told = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PROGRAMS)
    assert all(f"`{name}.py`" in told for name in PROGRAMS)
