"""The child that loads packages early: it works once it has loaded, and steps aside where it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from warplens.recording.finishing.prepared import Prepared

Work = Callable[[Mapping[str, Any]], bool]
Load = Callable[[], tuple[Work, Iterable[object]]]


def _writes(path: Path) -> Load:
    def work(request: Mapping[str, Any]) -> bool:
        path.write_text(f"{request['text']} {os.getpid() != request['us']}")
        return bool(request["answer"])

    return lambda: (work, ())


@pytest.mark.parametrize("answer", [True, False])
def test_the_child_works_on_the_request(answer: bool, tmp_path: Path) -> None:
    child = Prepared(_writes(tmp_path / "x"))
    assert child.finish({"text": "done", "us": os.getpid(), "answer": answer}) == (answer, None)
    assert (tmp_path / "x").read_text() == "done True"


def test_a_child_without_the_packages_leaves_the_work_to_the_caller() -> None:
    def load() -> tuple[Work, Iterable[object]]:
        raise ModuleNotFoundError("pyarrow")

    assert Prepared(load).finish({}) is None


def test_a_killed_child_leaves_the_work_to_the_caller(tmp_path: Path) -> None:
    child = Prepared(_writes(tmp_path / "x"))
    os.kill(child._pid, signal.SIGKILL)
    os.waitpid(child._pid, 0)
    assert child.finish({}) is None
    assert not (tmp_path / "x").exists()


def test_a_child_that_dies_at_work_is_reported() -> None:
    def work(request: Mapping[str, Any]) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    assert Prepared(lambda: (work, ())).finish({}) == (
        False,
        "SIGKILL, which the system sends if memory is short",
    )


def test_signals_before_the_work_are_the_programs(tmp_path: Path) -> None:
    child = Prepared(_writes(tmp_path / "x"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(child._pid, number)
    assert child.finish({"text": "", "us": 0, "answer": True}) == (True, None)


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    code = """
import os
from warplens.recording.finishing.prepared import Prepared
print(Prepared(lambda: (lambda request: True, ()))._pid, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    end = time.monotonic() + 60
    while Path(f"/proc/{done.stdout.strip()}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_request_ends_the_loading_that_only_longer_runs_need(tmp_path: Path) -> None:
    def more() -> Iterator[None]:
        while True:
            time.sleep(0.01)
            yield

    child = Prepared(lambda: (lambda request: True, more()))
    time.sleep(0.1)
    assert child.finish({}) == (True, None)
