"""Snapshots one at a time, by real child processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warplens.recording.session import snapshots as module
from warplens.recording.session.snapshots import Answer, Snapshots

# Says how often it was started, once it may.
CHILD = """
import json, os, sys, time

def main(request):
    folder = os.path.dirname(request["note"])
    number = len([name for name in os.listdir(folder) if name.startswith("begun")]) + 1
    open(f"{folder}/begun{number}", "w").close()
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.01)
    json.dump({"finished": True, "said": [], "lines": [str(number)]}, sys.stdout)
"""


class Launcher:
    """Snapshots into `folder`, and the pids of the children that write them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids: list[int] = []
        self.answers: list[Answer] = []
        self.snapshots = Snapshots(folder / "note.json", self._aside)

    @contextmanager
    def _aside(self) -> Iterator[Callable[[int], None]]:
        yield self.pids.append

    def ask(self) -> None:
        self.snapshots.ask(self.answers.append)

    def begun(self, number: int) -> None:
        self.until(lambda: (self.folder / f"begun{number}").exists())

    def go(self) -> None:
        (self.folder / "go").touch()
        self.until(lambda: not self.snapshots.busy)

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < end
            self.snapshots.look()
            time.sleep(0.01)


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "snapshot_stand_in.py").write_text(CHILD, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setattr(module, "MODULE", "snapshot_stand_in")
    return Launcher(tmp_path)


def test_a_request_during_a_snapshot_gets_the_next_one(launcher: Launcher) -> None:
    launcher.ask()
    launcher.begun(1)
    launcher.ask()
    launcher.ask()
    launcher.snapshots.look()
    assert launcher.answers == []
    launcher.go()
    assert [answer["lines"] for answer in launcher.answers] == [["1"], ["2"], ["2"]]
    assert len(launcher.pids) == 2


def test_a_child_that_dies_is_told_and_the_next_one_works(launcher: Launcher) -> None:
    launcher.ask()
    launcher.begun(1)
    os.kill(launcher.pids[0], signal.SIGKILL)
    launcher.until(lambda: bool(launcher.answers))
    assert "was not written" in launcher.answers[0]["said"][0]
    assert not launcher.answers[0]["finished"]
    launcher.ask()
    launcher.go()
    assert launcher.answers[1]["finished"]


def test_a_child_that_somebody_else_waited_for_still_answers(launcher: Launcher) -> None:
    (launcher.folder / "go").touch()
    launcher.ask()
    os.waitpid(launcher.pids[0], 0)  # the launcher waits for whatever ends
    launcher.until(lambda: bool(launcher.answers))
    assert launcher.answers[0]["lines"] == ["1"]


def test_the_end_of_the_recording_ends_it(launcher: Launcher) -> None:
    launcher.ask()
    launcher.begun(1)
    launcher.ask()
    waiting = launcher.snapshots.cancel()
    assert len(waiting) == 2
    assert not Path(f"/proc/{launcher.pids[0]}").exists()
    launcher.ask()
    assert not launcher.snapshots.busy
    assert launcher.answers == []


def test_no_child_is_told(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warplens.recording.finishing.finisher.sys.executable", "/usr/bin/notebook")
    launcher.ask()
    assert "cannot be written" in launcher.answers[0]["said"][0]
    assert not launcher.snapshots.busy
