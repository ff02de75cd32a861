"""Files appear whole, and devices and pipes stay what they are."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from warplens.disk.replacing import replacing
from warplens.errors import ReportError
from warplens.handover.output_name import claim


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    out.write_text("before")
    with replacing(out) as partial:
        partial.write_text("after")
        assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert out.read_text() == "after"


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    out.write_text("before")

    def fail() -> None:
        with replacing(out) as partial:
            partial.write_text("half")
            raise ReportError("stop")

    with pytest.raises(ReportError, match="stop"):
        fail()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"x.json": "before"}


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    out = tmp_path / "pipe"
    os.mkfifo(out)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(out.read_text()))
    reader.start()
    with replacing(out) as partial:
        partial.write_text("all of it")
    reader.join()
    assert (read, stat.S_ISFIFO(out.stat().st_mode)) == (["all of it"], True)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_device_stays_one(tmp_path: Path) -> None:
    out = tmp_path / "null"
    if subprocess.run(["mknod", out, "c", "1", "3"], check=False, capture_output=True).returncode:
        pytest.skip("only root makes devices")
    before = out.stat().st_rdev
    with replacing(out) as partial:
        partial.write_text("gone")
    assert (stat.S_ISCHR(out.stat().st_mode), out.stat().st_rdev) == (True, before)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pass


def test_a_report_is_not_made_beside_a_device_or_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ReportError, match="pipe is a device or a pipe"):
        claim(str(tmp_path / "pipe"), host="h")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
