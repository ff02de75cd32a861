"""Programs that are not there: the tree names them and the reason, and a child of vfork is no thread of its parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment
from warplens.report import open as open_report

TRIES = """
import os, subprocess
for words in (["/nonexistent/x", "--flag"], ["no-such-command-anywhere"]):
    try:
        subprocess.run(words)
    except FileNotFoundError:
        pass
pid = os.fork()
if pid == 0:
    try:
        os.execv("/nonexistent/forked", ["forked", "1"])
    except OSError:
        os._exit(127)
os.waitpid(pid, 0)
pid = os.fork()
if pid == 0:
    try:
        os.execv("/nonexistent/other", ["other"])
    except OSError:
        os._exit(0)  # it does well without
os.waitpid(pid, 0)
try:
    os.posix_spawn("/nonexistent/spawned", ["spawned", "1"], os.environ)
except FileNotFoundError:
    pass
subprocess.run(["/bin/true"])
"""


@pytest.mark.parametrize("options", [("--light",), ("-t", "osrt")], ids=["light", "osrt"])
def test_a_program_that_is_not_there_is_named_with_the_reason(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "tries.py").write_text(TRIES)
    done = subprocess.run(
        [*COMMAND, "profile", "-q", "-o", "x", *options, sys.executable, "tries.py"],
        cwd=tmp_path, env=environment(), text=True, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        rows = report.table("processes").to_pylist()
        reason = "could not be started: No such file or directory"
        failed = {row["name"]: row["command"] for row in rows if row["not_recorded"] == reason}
        assert failed == {
            "x": "/nonexistent/x --flag",
            "no-such-command-anywhere": "no-such-command-anywhere",
            "forked": "forked 1",
            "spawned": "spawned 1",
        }
        assert len(rows) == 7  # and the program, its child that did well, and true
        # Python starts them by vfork: they share its memory, and what they call there is not a thread's.
        names = {row["process"]: row["name"] for row in rows}
        threads = [
            row["tid"] for row in report.table("threads").to_pylist() if names[row["process"]] == "tries.py"
        ]
        pids = {row["pid"] for row in rows if row["name"] == "tries.py"}
        assert set(threads) <= pids
