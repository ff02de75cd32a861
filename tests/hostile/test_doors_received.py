"""A report from somebody else is only read: no command writes into it, converts what it holds or removes anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.convert.recording import recording
from warplens.convert.finish import finish, snapshot
from warplens.handover import pending
from warplens.storage import generations
from warplens.testing.timeline import timeline

Tree = dict[str, tuple[int, int, int, bytes]]


def tree(folder: Path) -> Tree:
    """All that is in a folder, and when it was changed: its folders as well."""
    found: Tree = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        found[str(path)] = (
            status.st_ino,
            status.st_mtime_ns,
            status.st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
    return found


def warplens(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warplens", *words], capture_output=True, text=True, check=False
    )


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Begins as somebody else; what is returned makes us ourselves again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "their state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda: monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "my state"))


@pytest.fixture
def received(tmp_path: Path, stranger: Callable[[], None]) -> Path:
    """A stranger's report with all that one of ours would be changed for: an unfinished recording, an old generation, no index."""
    report = tmp_path / "r.warplens"
    timeline(report, "main |[step ][step ]")
    note = pending.adopt(report, recording(report / "spool" / "x-1-1", launch={}), "x-1-1")
    manifest = snapshot(note)
    left = report / str(manifest.tables[generations.FIRST]["file"])
    shutil.copy(left, left.with_name(left.name.replace(".s1.", ".s7.")))
    stranger()
    return report


COMMANDS = {
    "info": ("info", "{}"),
    "stats": ("stats", "{}"),
    "timeline": ("timeline", "{}"),
    "analyze": ("analyze", "{}"),
    "query": ("query", "{}", "SELECT count(*) FROM nvtx_ranges"),
    "export": ("export", "-t", "chrome", "-o", "{}.json", "{}"),
    "view": ("view", "--export", "{}.html", "{}"),  # makes an index
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_changes_it(words: tuple[str, ...], received: Path) -> None:
    before = tree(received)
    done = warplens(*(word.format(received) for word in words))
    assert tree(received) == before
    assert "Traceback" not in done.stderr


def test_a_received_report_can_be_read_unfinished(received: Path) -> None:
    done = warplens("info", str(received))
    assert "another user or machine made it" in done.stdout
    assert "nvtx_ranges" in done.stdout


def test_trust_finishes_it(received: Path) -> None:
    done = warplens("info", "--trust", str(received))
    assert "another user or machine made it" not in done.stdout
    assert not (received / "pending.d").exists()


def test_ones_own_is_finished_and_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "my state"))
    report = tmp_path / "r.warplens"
    finish(pending.adopt(report, recording(tmp_path / "first", launch={}), "x-1-1"), report)
    pending.adopt(report, recording(tmp_path / "second", launch={}), "x-2-2")
    for table in ("processes", "nvtx_ranges"):
        (report / "tables" / table / "host-1.s7.parquet").touch()
    warplens("info", str(report))
    assert not (report / "pending.d").exists()
    assert not list(report.rglob("*.s7.parquet"))


@pytest.mark.parametrize("change", ["spool", "token", "boot_id", "ended"])
def test_a_changed_note_is_a_strangers(change: str, tmp_path: Path) -> None:
    note = pending.adopt(tmp_path / "r.warplens", recording(tmp_path / "spool", launch={}), "x-1-1")
    note.path.write_text(json.dumps({**json.loads(note.path.read_text()), change: "other"}))
    assert [read.own for read in pending.listed(tmp_path / "r.warplens")] == [False]


def test_a_pipe_in_place_of_the_clocks_is_not_waited_for(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    note = pending.adopt(report, recording(tmp_path / "spool", launch={}), "x-1-1")
    note.path.write_text(json.dumps({**json.loads(note.path.read_text()), "host": "another"}))
    os.mkfifo(tmp_path / "spool" / "clocks.jsonl")
    (read,) = pending.listed(report)
    assert pending.runner(read) == "host another"
