"""Under --keep-last the spools of processes that ended long ago go; what lives, what is young and what was saved stays."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import time
from pathlib import Path

import pytest

from warplens.handover.control_layout import LIMITS
from warplens.handover.pending import start_ticks
from warplens.recording.agent.control_file import ControlPage
from warplens.recording.agent.library import Agent, CaptureSettings, load_agent
from warplens.recording.spool.outdated import OutdatedSpools

pytestmark = pytest.mark.require("native")
SECOND = 1_000_000_000
HOUR = 3600 * SECOND
DEAD = "h-999999999-1"
BYTES = LIMITS + 16


class Days:
    """A spool directory whose recorder keeps an hour, and a clock that the test moves."""

    def __init__(self, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spool = spool
        self.now = time.monotonic_ns()
        self.agent: Agent = load_agent()
        early = self.agent.clock_sample()
        time.sleep(0.02)
        self.agent.create_control(
            spool / "control", early, CaptureSettings(open=False, keep_ns=HOUR, max_bytes=1 << 30)
        )
        self.control = ControlPage(spool / "control")
        self.gone: list[str] = []
        self.recorder = OutdatedSpools(spool, self.control, self.agent, HOUR, self.gone.append)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now)

    def file(self, name: str, *, begun_ns: int = 0, ended_ns: int = 0, size: int = 4096) -> Path:
        """Make a spool file of a process."""
        text = json.dumps({"process": {"start_ns": begun_ns}}).encode()
        head = bytearray(4096)
        struct.pack_into("<II", head, 16, 4096, len(text))
        struct.pack_into("<QQQ", head, 56, size, 0, ended_ns)
        path = self.spool / f"{name}.spool"
        path.write_bytes(bytes(head) + text)
        self.agent.charge(self.control.address, size)
        return path

    def bytes(self) -> int:
        """What is charged."""
        return int(ctypes.c_uint64.from_address(self.control.address + BYTES).value)

    def go_on(self, ns: int) -> None:
        """Some time passes, and the launcher looks often enough."""
        for _ in range(4):
            self.now += ns // 4
            self.recorder.look()

    def close(self) -> None:
        """Unmap."""
        self.control.close()


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Days:
    return Days(tmp_path, monkeypatch)


def test_a_server_that_starts_processes_for_three_days(days: Days) -> None:
    """One each ten minutes: there are never more files than of some hours, and all bytes of the others are free again."""
    alive = days.file(f"h-{os.getpid()}-{start_ticks(os.getpid())}")
    most = 0
    for number in range(3 * 24 * 6):
        days.file(f"h-{900_000_000 + number}-1", size=1 << 20)
        days.go_on(600 * SECOND)
        most = max(most, len(list(days.spool.glob("*.spool"))))
    assert most <= 1 + 10
    assert alive.exists()
    assert days.recorder.removed == len(days.gone) >= 3 * 24 * 6 - 10
    assert days.bytes() == 4096 + (most - 1) * (1 << 20)
    assert days.now - 2 * HOUR < days.recorder.newest_ns < days.now - HOUR
    assert len(days.recorder._ended) <= 10
    days.close()


def test_young_and_living_spools_stay(days: Days) -> None:
    alive, dead = days.file(f"h-{os.getpid()}-{start_ticks(os.getpid())}"), days.file(DEAD)
    other = days.spool / "what others wrote.spool"
    other.write_bytes(b"")
    days.go_on(HOUR)
    assert dead.exists()
    days.go_on(HOUR)
    assert (alive.exists(), dead.exists(), other.exists()) == (True, False, True)
    days.close()


@pytest.mark.parametrize(
    ("begun", "ended", "stays"), [(-50, -20, True), (-50, 0, True), (-50, -40, False), (5, 10, False)]
)
def test_spools_in_saved_windows_stay(begun: int, ended: int, stays: bool, days: Days) -> None:
    """The window holds the last 30 s before now; processes by when they began and ended, s from now."""
    now = days.agent.clock_sample().monotonic
    days.agent.open_window(days.control.address, 1, now - 100 * SECOND)
    days.agent.keep_window(days.control.address, 7, 30 * SECOND, go_on=True)
    file = days.file(DEAD, begun_ns=now + begun * SECOND, ended_ns=ended and now + ended * SECOND)
    days.go_on(4 * HOUR)
    assert file.exists() == stays
    days.close()


def test_a_directory_that_is_gone(days: Days) -> None:
    for path in days.spool.iterdir():
        path.unlink()
    days.spool.rmdir()
    days.go_on(HOUR)
    assert days.recorder.removed == 0
    days.close()
