"""Runs a command and returns its wall time, from start to exit, and its peak memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence


def measure(command: Sequence[str]) -> tuple[float, float]:
    """Return wall seconds and peak GB of a command that must succeed; what it prints is dropped."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} … exited with {process.returncode}")
    return wall, usage.ru_maxrss * 1024 / 1e9
