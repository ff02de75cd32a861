"""A child that may be lost: its answer, its end, and what it leaves alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment
from warplens.recording.finishing.expendable import how_it_ended, run_expendable


@pytest.mark.parametrize("answer", [True, False])
def test_the_answer_is_that_of_the_work(answer: bool) -> None:
    assert run_expendable(lambda: answer) == (answer, None)


def test_the_work_runs_elsewhere_and_is_the_first_to_go(tmp_path: Path) -> None:
    def work() -> bool:
        score = Path("/proc/self/oom_score_adj").read_text(encoding="ascii").strip()
        (tmp_path / "said").write_text(f"{score} {os.getpid()}", encoding="ascii")
        return True

    before = Path("/proc/self/oom_score_adj").read_text(encoding="ascii")
    assert run_expendable(work) == (True, None)
    score, pid = map(int, (tmp_path / "said").read_text(encoding="ascii").split())
    assert (score, pid != os.getpid()) == (1000, True)
    assert Path("/proc/self/oom_score_adj").read_text(encoding="ascii") == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_that_is_killed_is_said(number: signal.Signals) -> None:
    def work() -> bool:
        os.kill(os.getpid(), number)
        return True

    assert run_expendable(work) == (False, how_it_ended(-number))
    assert number.name in how_it_ended(-number)


def test_an_error_that_nobody_caught_ends_the_child_only() -> None:
    def work() -> bool:
        raise SystemExit(5)

    assert run_expendable(work) == (False, "exit code 1")


def test_without_another_process_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(os, "fork", refused)
    us = os.getpid()
    assert run_expendable(lambda: os.getpid() == us) == (True, None)


def test_ctrl_c_ends_the_work_in_order_and_is_raised(tmp_path: Path) -> None:
    text = """
import os, signal, sys, time
from pathlib import Path
from warplens.recording.finishing.expendable import run_expendable
launcher = os.getpid()
def work():
    try:
        os.kill(launcher, signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # the terminal's, beside the one that is passed on
        time.sleep(60)
    finally:
        time.sleep(0.3)  # what is passed on comes now
        Path("cleaned").touch()
try:
    run_expendable(work)
except KeyboardInterrupt:
    print("interrupted", Path("cleaned").exists())
"""
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout) == (0, "interrupted True\n"), done.stderr
