"""What is recorded is for its owner alone, whatever the umask: command lines with secrets are in it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from warplens.importers.importing import import_file
from warplens.report import open as open_report
from warplens.timeline.index import LaneIndex


def open_to_others(folder: Path) -> list[str]:
    return [str(path) for path in (folder, *folder.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o077]


KILL = ("sh", "-c", "kill -9 $PPID")


@pytest.mark.parametrize(
    ("words", "folder"),
    [(("true",), "tables"), (("--keep-raw", "true"), "raw"), (KILL, "spool")],
    ids=lambda at: at[0],
)
def test_a_recording_is_private(words: tuple[str, ...], folder: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warplens", "profile", "--light", "-q", "-o", "x", *words]
    subprocess.run(command, cwd=tmp_path, umask=0, check=False, capture_output=True)
    assert (tmp_path / "x.warplens" / folder).is_dir()
    assert open_to_others(tmp_path / "x.warplens") == []


def test_an_import_and_an_index_are_private(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    before = os.umask(0)
    try:
        import_file(tmp_path / "trace.json", tmp_path / "x.warplens")
        with open_report(tmp_path / "x.warplens") as report:
            LaneIndex.open(report.stored, report.stored.parts[0], None)
    finally:
        os.umask(before)
    assert (tmp_path / "x.warplens" / "index").is_dir()
    assert open_to_others(tmp_path / "x.warplens") == []
