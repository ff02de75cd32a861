"""The agent library as the launcher uses it, and what is said when it is not there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from warplens.errors import CaptureError
from warplens.recording.agent.control_file import ControlPage, Counts
from warplens.recording.agent.library import CLOCK_KINDS, load_agent


def test_a_missing_library_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="missing") as caught:
        load_agent(tmp_path / "libwarplens_agent.so")
    assert "make native" in str(caught.value)


def test_a_library_of_another_system_is_said(tmp_path: Path) -> None:
    (tmp_path / "agent.so").write_bytes(b"\x7fELF of another machine")
    with pytest.raises(CaptureError, match="cannot be loaded"):
        load_agent(tmp_path / "agent.so")


@pytest.mark.require("native")
def test_the_clocks_are_those_of_python() -> None:
    before, sample, after = time.monotonic_ns(), load_agent().clock_sample(), time.monotonic_ns()
    assert sample.kind in CLOCK_KINDS
    assert before <= sample.monotonic <= after
    assert abs(sample.realtime - time.time_ns()) < 60e9


@pytest.mark.require("native")
def test_the_control_page_starts_empty_and_can_be_written_again(tmp_path: Path) -> None:
    agent = load_agent()
    early = agent.clock_sample()
    time.sleep(0.002)
    agent.create_control(tmp_path / "control", early)
    page = ControlPage(tmp_path / "control")
    assert page.counts() == Counts(0, 0, 0, 0)
    (tmp_path / "control").rename(tmp_path / "deleted")
    with (tmp_path / "deleted").open("r+b") as file:  # an agent counts itself
        file.seek(48)
        file.write(
            (3).to_bytes(8, "little")
            + (2).to_bytes(8, "little")
            + (28).to_bytes(8, "little")
            + (7).to_bytes(8, "little")
        )
    assert page.counts() == Counts(3, 2, 28, 7)
    page.write_again(tmp_path / "control")
    assert page.counts() == Counts(3, 2, 28, 7)
    fresh = ControlPage(tmp_path / "control")
    assert fresh.counts() == Counts(0, 0, 0, 0)
    assert (tmp_path / "control").read_bytes()[:48] == (tmp_path / "deleted").read_bytes()[:48]
    fresh.close()
    page.close()


@pytest.mark.require("native")
def test_a_control_page_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    agent = load_agent()
    with pytest.raises(OSError, match="No such file"):
        agent.create_control(tmp_path / "none" / "control", agent.clock_sample())


@pytest.mark.require("native")
def test_the_cost_of_a_range_is_measured_and_leaves_nothing(tmp_path: Path) -> None:
    cost = load_agent().pair_cost(tmp_path, 2000)
    assert cost is not None
    assert cost > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.require("native")
def test_a_cost_that_cannot_be_measured_is_none(tmp_path: Path) -> None:
    assert load_agent().pair_cost(tmp_path / "none", 2000) is None
