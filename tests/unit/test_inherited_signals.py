"""Tests behave the same under `nohup`, in background jobs and below parents that block signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_START_A_PROGRAM = """
import os, signal, subprocess
from tests.support.programs.inherited_signals import reset_inherited_signals
reset_inherited_signals()
os.kill(os.getpid(), signal.SIGHUP)
print(subprocess.run(["cat", "/proc/self/status"], stdout=subprocess.PIPE, text=True, check=True).stdout)
"""


def _masks(script: str) -> dict[str, int]:
    """Run a script whose parent ignores SIGHUP and blocks SIGTERM; return the signal masks of the program that it starts."""

    def prepare() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=prepare,
    )
    rows = (line.split(":") for line in done.stdout.splitlines() if line.startswith("Sig"))
    return {name: int(value, 16) for name, value in rows if name in ("SigIgn", "SigBlk")}


def _bit(number: signal.Signals) -> int:
    return 1 << (number - 1)


def test_a_program_starts_with_default_signals() -> None:
    masks = _masks(_START_A_PROGRAM)
    assert masks["SigBlk"] == 0
    assert masks["SigIgn"] & _bit(signal.SIGHUP) == 0


def test_without_the_reset_it_would_inherit_them() -> None:
    masks = _masks(_START_A_PROGRAM.replace("reset_inherited_signals()\nos", "os"))
    assert masks["SigBlk"] & _bit(signal.SIGTERM)
    assert masks["SigIgn"] & _bit(signal.SIGHUP)
