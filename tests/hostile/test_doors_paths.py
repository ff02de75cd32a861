"""Paths with bytes that are no UTF-8: refused in words before anything runs, or taken as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warplens.testing.timeline import timeline

BAD = os.fsdecode(b"r\xff")


def warplens(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "warplens", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_program_runs_for_a_report_that_could_not_be_read(tmp_path: Path) -> None:
    done = warplens(tmp_path, "profile", "-o", BAD, "touch", "ran")
    assert done.returncode == 1
    assert done.stderr.startswith("warplens: error: ")
    assert r"r\udcff.warplens is not UTF-8, so the report could not be read." in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["info", "stats", "timeline", "analyze", "export -t html", "query"])
def test_a_report_that_was_moved_there_is_refused(command: str, tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ][step ]")
    (tmp_path / BAD).mkdir()
    (tmp_path / "r.warplens").rename(tmp_path / BAD / "r.warplens")
    done = warplens(
        tmp_path,
        *command.split(),
        tmp_path / BAD / "r.warplens",
        *(["SELECT 1"] if command == "query" else []),
    )
    assert done.returncode == 1
    assert r"r\udcff/r.warplens is not UTF-8, so its tables cannot be read. Move it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["perfetto", "chrome", "html", "nsys_sqlite", "kineto"])
def test_an_export_may_be_called_anything(form: str, tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ][step ]")
    done = warplens(tmp_path, "export", "-q", "-t", form, "-o", BAD, "r.warplens")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / BAD).stat().st_size


def test_a_trace_of_another_tool_may_be_called_anything(tmp_path: Path) -> None:
    (tmp_path / f"{BAD}.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    done = warplens(tmp_path, "stats", "-q", f"{BAD}.json")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
