"""Spool files survive the deletion of their directory."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warplens.handover.control_layout import FILE_SIZE
from warplens.recording.agent.control_file import ControlPage
from warplens.recording.spool.holder import SpoolKeeper


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "report" / "spool" / "h-1-2"
    path.mkdir(parents=True)
    (path / "control").write_bytes(b"WLCNTRL1" + bytes(range(40)) + bytes(FILE_SIZE - 48))
    return path


@pytest.fixture
def control(spool: Path) -> Iterator[ControlPage]:
    page = ControlPage(spool / "control")
    yield page
    page.close()


def test_without_deletions_no_file_is_rescued(spool: Path, control: ControlPage) -> None:
    (spool / "a.spool").write_bytes(b"a")
    keeper = SpoolKeeper(spool, control)
    keeper.look()
    assert (keeper.rescue(), keeper.deleted, keeper.lost) == (0, 0, 0)
    assert (spool / "a.spool").read_bytes() == b"a"


def test_deleted_files_come_back_with_what_was_written_since(
    spool: Path, control: ControlPage, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 8192
    with (spool / "a.spool").open("wb", buffering=0) as agent:
        agent.write(content)
        keeper = SpoolKeeper(spool, control)
        keeper.look()
        shutil.rmtree(tmp_path / "report")
        keeper.look()
        agent.write(b"later")
    assert keeper.deleted == 1
    assert (spool / "control").read_bytes()[:48] == b"WLCNTRL1" + bytes(range(40))
    (spool / "b.spool").write_bytes(b"b")  # a process that started after the deletion
    keeper.look()
    assert keeper.rescue() == 1
    assert (spool / "a.spool").read_bytes() == content + b"later"
    assert (spool / "b.spool").read_bytes() == b"b"
    assert keeper.lost == 0


def test_single_deleted_files_come_back(spool: Path, control: ControlPage) -> None:
    (spool / "a.spool").write_bytes(b"a")
    keeper = SpoolKeeper(spool, control)
    keeper.look()
    (spool / "a.spool").unlink()
    assert keeper.rescue() == 1
    assert (spool / "a.spool").read_bytes() == b"a"


def test_more_files_than_may_be_held_are_counted_only_when_they_are_lost(
    spool: Path, control: ControlPage
) -> None:
    for number in range(5):
        (spool / f"{number}.spool").write_bytes(b"x")
    keeper = SpoolKeeper(spool, control, limit=3)
    keeper.look()
    keeper.look()
    assert keeper.not_held == 2
    shutil.rmtree(spool)
    keeper.look()
    assert keeper.rescue() == 3
    assert keeper.lost == 2


def test_a_directory_that_cannot_come_back_loses_the_files(
    spool: Path, control: ControlPage, tmp_path: Path
) -> None:
    (spool / "a.spool").write_bytes(b"a")
    keeper = SpoolKeeper(spool, control)
    keeper.look()
    shutil.rmtree(tmp_path / "report")
    (tmp_path / "report").touch()  # a file is in the way
    keeper.look()
    assert keeper.rescue() == 0
    assert keeper.lost == 1


def test_the_keeper_notes_the_death_of_a_killed_process(spool: Path, control: ControlPage) -> None:
    keeper = SpoolKeeper(spool, control)
    with subprocess.Popen(["sleep", "60"]) as killed, subprocess.Popen(["sleep", "60"]) as orderly:
        header = bytearray(4096)
        (spool / f"h-{killed.pid}-1.spool").write_bytes(header)
        header[72] = 1  # FileHeader::end_ns
        (spool / f"h-{orderly.pid}-1.spool").write_bytes(header)
        begin = time.monotonic_ns()
        keeper.look()
        keeper.look()
        seen = time.monotonic_ns()
        killed.kill()
        orderly.kill()
    keeper.look()
    assert list(keeper.killed()) == [f"h-{killed.pid}-1.spool"]
    assert begin <= keeper.killed()[f"h-{killed.pid}-1.spool"] <= seen
    keeper.rescue()
