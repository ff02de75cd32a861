"""The converter beside a program: its share of a core, the end of the recording, and when there is none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warplens.cli import convert_child, recording
from warplens.handover import pending
from warplens.recording.options.capture import CaptureOptions

WORK_S = 0.1  # CPU time between two looks at the clock


class Clock:
    """A clock that only waiting and work move. It stands for the module `time` and for the event of the end."""

    def __init__(self) -> None:
        self.now = self.used = 0.0
        self.over = False

    def monotonic_ns(self) -> int:
        return round(self.now * 1e9)

    def process_time(self) -> float:
        return self.used

    def is_set(self) -> bool:
        return self.over

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def work(self) -> None:
        self.now += WORK_S
        self.used += WORK_S


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(convert_child, "time", made)
    return made


@pytest.fixture
def converter(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> convert_child._Converter:
    made = convert_child._Converter(pending.begin(tmp_path / "x.warplens", tmp_path / "spool"), 0, ())
    monkeypatch.setattr(made, "_over", clock)
    return made


def test_it_takes_a_twentieth_of_a_core(converter: convert_child._Converter, clock: Clock) -> None:
    while clock.now < 600 and converter._pace():
        assert clock.used <= convert_child.SHARE * clock.now + 1e-6
        clock.work()
    assert clock.now >= 600
    assert clock.used == pytest.approx(0.05 * 600, abs=2 * WORK_S)


def test_a_long_silence_may_be_made_up_for(converter: convert_child._Converter, clock: Clock) -> None:
    clock.now = 100.0
    begun = clock.now
    for _ in range(40):  # 4 s of the 5 s that were not used
        assert converter._pace()
        clock.work()
    assert clock.now == pytest.approx(begun + 40 * WORK_S)


def test_it_does_not_wait_when_the_recording_is_over(
    converter: convert_child._Converter, clock: Clock
) -> None:
    clock.used, clock.over = 100.0, True
    assert not converter._pace()
    assert clock.now == 0.0


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        (CaptureOptions(), True),
        (CaptureOptions(convert="end"), False),
        (CaptureOptions(keep_last=30.0), False),
    ],
)
def test_what_is_converted_during_the_run(options: CaptureOptions, begins: bool, tmp_path: Path) -> None:
    place = SimpleNamespace(note=SimpleNamespace(path=tmp_path / "x"), spool=SimpleNamespace(path=tmp_path))
    request = SimpleNamespace(quiet=True)
    converting = recording._converting(cast(Any, place), cast(Any, request), options)
    assert (converting is not None) == begins
