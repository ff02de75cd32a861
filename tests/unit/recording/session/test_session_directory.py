"""Who runs a session: entering, finding, refusing a second of the same name, and what dead launchers leave."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warplens.errors import CaptureError, UsageError
from warplens.recording.session.directory import Membership, entries, join
from warplens.recording.session.runtime_dir import OVERRIDE

SRC = Path(__file__).resolve().parents[4] / "src"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "sessions"))
    return tmp_path / "sessions"


@pytest.fixture
def members() -> Iterator[list[Membership]]:
    joined: list[Membership] = []
    yield joined
    for member in joined:
        member.leave()


def found() -> dict[str, bool]:
    with entries() as listed:
        return {entry.note.name: entry.alive for entry in listed}


def killed_launcher(name: str, part: str = "") -> None:
    """A launcher that enters itself and is killed."""
    code = f"""
        import os, signal
        from dataclasses import replace
        from warplens.recording.session.directory import join
        member = join({name!r}, "x")
        member.describe(replace(member.note, report="run.warplens", part={part!r}, command=("sleep", "1")))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "PYTHONPATH": str(SRC)}, timeout=60
    )
    assert done.returncode == -signal.SIGKILL


def test_an_entry_says_who_and_what(folder: Path, members: list[Membership]) -> None:
    members.append(join("serve", "profile-1"))
    members[0].describe(
        replace(members[0].note, report="a.warplens", part="note", command=("python", "x\udcff.py", "é"))
    )
    with entries() as listed:
        (entry,) = listed
        assert entry.alive
        assert entry.note == members[0].note
        assert entry.note.pid == os.getpid()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(entry.address)
    for name in ("serve.lock", "serve.json", "serve.sock"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name


def test_leaving_removes_everything(folder: Path) -> None:
    join("serve", "x").leave()
    assert list(folder.iterdir()) == []


def test_a_name_is_for_one_session(folder: Path, members: list[Membership]) -> None:
    members.append(join("serve", "x"))
    with pytest.raises(UsageError, match=f"A session serve runs already: process {os.getpid()}"):
        join("serve", "x")
    assert found() == {"serve": True}


def test_names_that_nobody_chose_get_numbers(folder: Path, members: list[Membership]) -> None:
    members += [join(None, "profile-1") for _ in range(3)]
    assert found() == {"profile-1": True, "profile-1-2": True, "profile-1-3": True}


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 65, "-f", "new\nline"])
def test_names_that_are_no_file_names_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="Invalid session name"):
        join(name, "x")


def test_a_killed_launcher_shows_until_its_report_is_finished(
    folder: Path, tmp_path: Path, members: list[Membership]
) -> None:
    part = tmp_path / "part.json"
    part.touch()
    killed_launcher("serve", str(part))
    assert found() == {"serve": False}
    members.append(join("other", "x"))
    assert found() == {"other": True, "serve": False}
    part.unlink()
    members.append(join("third", "x"))
    assert found() == {"other": True, "third": True}


def test_the_name_of_a_killed_launcher_is_free(
    folder: Path, tmp_path: Path, members: list[Membership]
) -> None:
    (tmp_path / "part.json").touch()
    killed_launcher("serve", str(tmp_path / "part.json"))
    members.append(join("serve", "x"))
    assert found() == {"serve": True}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff" * 100,
        b'{"name": "serve"}',
        b"[" * 60_000,
        b'{"name": "serve", "command": 3}',
    ],
)
def test_a_note_that_makes_no_sense_hides_no_session(
    folder: Path, members: list[Membership], content: bytes
) -> None:
    members.append(join("serve", "x"))
    (folder / "serve.json").write_bytes(content)
    assert found() == {"serve": True}


def test_other_files_are_no_sessions(folder: Path, members: list[Membership]) -> None:
    members.append(join("serve", "x"))
    (folder / "stray.json").write_text(json.dumps({"name": "stray"}))
    (folder / ".lock").touch()
    (folder / "dir.lock").mkdir()
    os.mkfifo(folder / "pipe.lock")
    os.mkfifo(folder / "serve2.json")
    assert found()["serve"]


def test_long_command_lines_are_cut(folder: Path, members: list[Membership]) -> None:
    members.append(join("serve", "x"))
    members[0].describe(replace(members[0].note, command=("word",) * 100_000))
    with entries() as listed:
        assert 10 < len(listed[0].note.command) < 5000


@pytest.mark.parametrize("what", ["serve.lock", "serve.sock", "serve.json", None])
def test_a_session_notices_that_its_entry_was_removed(
    folder: Path, members: list[Membership], what: str | None
) -> None:
    members.append(join("serve", "x"))
    assert members[0].in_place()
    if what is None:
        folder.rename(folder.with_name("gone"))
    else:
        (folder / what).unlink()
    assert not members[0].in_place()


def test_entries_without_a_lock_are_replaced(folder: Path, members: list[Membership]) -> None:
    folder.mkdir(mode=0o700)
    for name in ("serve.sock", "serve.json", f".serve.{os.getpid()}.lock"):
        (folder / name).touch()
    members.append(join("serve", "x"))
    assert found() == {"serve": True}
    assert len(list(folder.iterdir())) == 3


def test_a_name_that_cannot_be_entered_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("warplens.recording.session.directory.json.dumps", refuse)
    with pytest.raises(CaptureError, match="No space left"):
        join("serve", "x")
    assert list(folder.iterdir()) == []


def test_the_files_of_another_are_left_alone(folder: Path, members: list[Membership]) -> None:
    first = join("serve", "x")
    for name in ("serve.lock", "serve.sock", "serve.json"):
        (folder / name).unlink()
    members.append(join("serve", "x"))
    first.leave()
    assert found() == {"serve": True}


def test_no_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "file" / "below"))
    with pytest.raises(CaptureError, match=OVERRIDE):
        join("serve", "x")
