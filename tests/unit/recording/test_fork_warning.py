"""A thread that begins after a fork begins when all hooks are over, so that no Python counts it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os
from warplens.recording.fork_warning import after_hooks
seen = []
def hook():
    after_hooks(lambda: seen.append("called"))
    seen.append("hook")
def other():
    for _ in range(1000):
        seen.append("other") if seen[-1] != "other" else None
os.register_at_fork(after_in_parent=hook)
os.register_at_fork(after_in_parent=other)
def fork():
    if (child := os.fork()) == 0:
        os._exit(0)
    seen.append("returned")
    os.waitpid(child, 0)
def twice():
    fork()
    fork()
twice()
print(*seen)
"""


def test_the_hook_runs_after_the_fork_returned() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout.replace("called returned", "returned called")
        == "hook other returned called hook other returned called\n"
    )
