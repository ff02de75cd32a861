"""A disk that is full from the start costs the recording, never the program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def full(tmpfs: Callable[[str], Path]) -> Path:
    disk = tmpfs("size=256k")
    with (disk / "full").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            pass
    return disk


@pytest.mark.require("tmpfs")
@pytest.mark.parametrize("spool", [None, "full", "roomy"])
def test_the_program_runs_all_the_same(spool: str | None, full: Path, tmp_path: Path) -> None:
    options = [] if spool is None else ["--spool-dir", str(full if spool == "full" else tmp_path)]
    program = [sys.executable, "-c", "import sys; print('ran once'); sys.exit(7)"]
    command = [
        sys.executable,
        "-m",
        "warplens",
        "profile",
        "--light",
        *options,
        "-o",
        str(full / "x"),
        *program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "ran once\n")
    assert done.stderr.startswith("warplens: NOTHING IS RECORDED: ")
    assert done.stderr.count("\n") == 1
    assert "None" not in done.stderr
    assert [path.name for path in full.iterdir()] == ["full"]
    assert list(tmp_path.iterdir()) == []
