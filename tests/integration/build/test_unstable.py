"""tools/unstable.py: what runs in the root file system of Debian's unstable leaves no mount and no process behind."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.require("unstable")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("unstable")


def test_status_and_output_come_back(tool: ModuleType) -> None:
    done = tool.inside(["sh", "-c", "cat /etc/debian_version; echo $WORD; exit 7"], environment={"WORD": "a b"}, quiet=True)
    assert done.returncode == 7
    assert done.stdout.splitlines()[-1] == "a b"


def test_its_mounts_are_seen_only_there(tool: ModuleType) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    done = tool.inside(["cat", "/proc/self/mountinfo"], quiet=True)
    mounted = [line.split()[4] for line in done.stdout.splitlines()]
    assert {"/", "/proc", "/sys", "/dev", "/dev/shm"} <= set(mounted)
    assert Path("/proc/self/mountinfo").read_text() == before


def test_a_process_that_is_left_ends(tool: ModuleType) -> None:
    word = f"3600.{time.monotonic_ns()}"
    assert tool.inside(["sh", "-c", f"setsid sleep {word} >/dev/null 2>&1 & echo started"], quiet=True).stdout == "started\n"
    _wait_for(lambda: not any(word.encode() in line for line in _command_lines()), "it outlived the command that started it")


def test_a_killed_tool_ends_the_programs_that_it_started(tool: ModuleType) -> None:
    word = f"3600.{time.monotonic_ns()}"
    text = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import unstable; unstable.inside(['sleep', {word!r}])"
    with subprocess.Popen([sys.executable, "-c", text]) as started:
        _wait_for(lambda: any(line.startswith(b"sleep") and word.encode() in line for line in _command_lines()), "nothing started")
        started.kill()
    _wait_for(lambda: not any(word.encode() in line for line in _command_lines()), "it outlived who started it")


def test_the_system_has_a_python_newer_than_the_oldest(tool: ModuleType) -> None:
    tool.copy_checkout()
    found = tool.pythons()
    assert found
    assert all(int(name.rstrip("t")[2:]) >= tool.OLDEST for name in found)


def _wait_for(true: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def _command_lines() -> list[bytes]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    return lines
