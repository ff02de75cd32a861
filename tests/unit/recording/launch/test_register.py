"""The launcher's end of the register of processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplens.recording.launch.register import ROOM, Register, descendants
from warplens.spool.registry import FOREIGN, RUNNING, WAITED, read_register

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="recording is for Linux")


def test_entries_of_the_launcher_can_be_read(tmp_path: Path) -> None:
    register = Register(tmp_path)
    register.waited(7, 137)
    register.foreign(8, 3, "/bin/static", ["static", "a b", ""])
    register.running([(9, 7)])
    register.close()
    found = read_register(tmp_path)
    assert found.damaged == 0
    assert [(entry.kind, entry.pid, entry.ppid, entry.status) for entry in found.entries] == [
        (WAITED, 7, os.getpid(), 137),
        (FOREIGN, 8, os.getpid(), 3),
        (RUNNING, 9, 7, 0),
    ]
    assert found.entries[1].texts == (b"/bin/static", b"static", b"a b", b"")


def test_the_file_is_private_and_has_room_without_looking_long(tmp_path: Path) -> None:
    register = Register(tmp_path)
    stat = (tmp_path / "processes.log").stat()
    register.close()
    assert stat.st_mode & 0o777 == 0o600
    assert stat.st_size == 0
    assert stat.st_blocks * 512 >= ROOM or stat.st_blocks == 0  # some filesystems cannot


def test_more_room_is_reserved_before_it_gets_scarce(tmp_path: Path) -> None:
    register = Register(tmp_path)
    before = (tmp_path / "processes.log").stat().st_blocks
    with (tmp_path / "processes.log").open("ab") as file:
        file.write(bytes(ROOM - 100))
    register.look()
    after = (tmp_path / "processes.log").stat().st_blocks
    register.close()
    assert after * 512 >= ROOM - 100 + ROOM or before == 0


def test_a_deleted_register_is_made_again_and_keeps_what_it_had(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    register = Register(spool)
    register.waited(7, 0)
    shutil.rmtree(spool)
    register.look()  # its directory is not there yet: nothing breaks
    register.waited(8, 0)
    spool.mkdir()
    register.look()
    register.waited(9, 0)
    register.close()
    assert [entry.pid for entry in read_register(spool).entries] == [7, 8, 9]


def test_a_register_that_cannot_be_created_fails_quietly(tmp_path: Path) -> None:
    register = Register(tmp_path / "nowhere")
    register.waited(7, 0)
    register.look()
    register.close()
    assert register.failed is not None


def test_the_register_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "processes.log").symlink_to(tmp_path / "other")
    register = Register(tmp_path)
    register.close()
    assert register.failed is not None
    assert not (tmp_path / "other").exists()


def test_descendants() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = descendants([child.pid])
        (sleep,) = (pid for pid, parent in found if parent == child.pid)
        os.kill(sleep, 9)
    assert found == [(child.pid, os.getpid()), (sleep, child.pid)]
