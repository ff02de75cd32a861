"""The exit code is the command's, whatever became of its output streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment

# Something writes without looking, as a library's warning would, and leaves what it could not write in the buffer.
CODE = """
import sys
import warplens.cli.group as group
from warplens.cli.main import main

def run(arguments):
    try:
        print("a warning", file=sys.{stream}, flush=True)
    except OSError:
        pass
    return 3

group.run = run
main([])
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_output_keeps_the_exit_code(stream: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(stream=stream)],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=full,
            check=False,
        )
    assert done.returncode == 3
