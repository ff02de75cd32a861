"""A recording that stays unfinished takes its spool along, whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from warplens.cli.printing.unfinished import leave_for_later
from warplens.disk.folder import Folder
from warplens.handover import pending

MISSING = ModuleNotFoundError("no pyarrow", name="pyarrow")


def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pending.Pending:
    """A recording whose spool lies on another file system."""
    note = pending.begin(tmp_path / "x.warplens", tmp_path / "spool")
    (tmp_path / "spool" / "a.spool").write_bytes(b"all")
    rename = os.rename

    def other_device(source: str, target: str, **folders: int) -> None:
        if source == "spool":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, **folders)

    monkeypatch.setattr("os.rename", other_device)
    return note


def test_a_spool_on_another_file_system_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = _elsewhere(tmp_path, monkeypatch)
    assert "pyarrow is not installed here" in leave_for_later(note, MISSING)
    assert (tmp_path / "x.warplens" / "spool" / note.id / "a.spool").read_bytes() == b"all"
    assert not (tmp_path / "spool").exists()


def test_half_a_copy_is_never_taken_for_the_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Folder, name: str, to: Folder, new: str) -> None:
        (to.path / new).write_bytes(b"a")
        raise OSError(errno.ENOSPC, "No space left on device")

    note = _elsewhere(tmp_path, monkeypatch)
    monkeypatch.setattr(Folder, "copy", full)
    said = leave_for_later(note, MISSING)
    assert f"could not be moved from {tmp_path / 'spool'}: No space left on device" in said
    assert list((tmp_path / "x.warplens" / "spool").iterdir()) == []
    assert (tmp_path / "spool" / "a.spool").read_bytes() == b"all"
