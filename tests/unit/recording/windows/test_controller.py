"""Windows opened and closed in a real control file: at times, at commands, at limits, and when a recording is over."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warplens.errors import CaptureError
from warplens.handover.control_layout import FILE_SIZE, OVER, TRIGGER, WINDOWS
from warplens.recording.agent.control_file import ControlPage
from warplens.recording.agent.library import Agent, load_agent
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.options.settings import settings
from warplens.recording.windows.controller import POLL_S, WATCH_S, Director

pytestmark = pytest.mark.require("native")
PATIENCE_S = 60
Make = Callable[..., Director]


@pytest.fixture
def agent() -> Agent:
    return load_agent()


class _Directed(Director):
    """With the control page that it directs, and what it did to the program."""

    control: ControlPage
    sent: list[int]
    woken: list[bool]


@pytest.fixture
def make(agent: Agent, tmp_path: Path) -> Iterator[Callable[..., _Directed]]:
    made: list[_Directed] = []

    def direct(**values: object) -> _Directed:
        options = CaptureOptions(**values)  # type: ignore[arg-type]
        path = tmp_path / f"control{len(made)}"
        agent.create_control(path, agent.clock_sample(), settings(options))
        control = ControlPage(path)
        sent: list[int] = []
        woken: list[bool] = []
        director = _Directed(control, agent, options, sent.append, wake=lambda: woken.append(True))
        director.control, director.sent, director.woken = control, sent, woken
        made.append(director)
        return director

    yield direct
    for director in made:
        director.end()
        director.control.close()


def _causes(director: Director) -> list[tuple[str, str]]:
    return [(window.opened_by, window.closed_by) for window in director.state().windows]


def _until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_without_options_one_window_is_the_whole_recording(make: Callable[..., _Directed]) -> None:
    threads = threading.active_count()
    director = make()
    director.begin()
    assert threading.active_count() == threads
    assert director.state().phase == "recording"
    director.end()
    assert (director.state().phase, _causes(director)) == ("over", [("start", "end")])
    assert not director.finished.is_set()


def test_commands_open_and_close_windows(make: Callable[..., _Directed]) -> None:
    director = make(start_later=True)
    director.begin()
    assert (director.state().phase, director.stop()) == ("waiting", 0)
    assert [director.start(), director.start(), director.stop(), director.stop(), director.start()] == [
        1,
        0,
        1,
        0,
        2,
    ]
    assert director.state().phase == "recording"
    director.stop()
    assert director.state().phase == "paused"
    assert _causes(director) == [("command", "command"), ("command", "command")]
    first, second = director.state().windows
    assert 0 < first.open_ns < first.close_ns <= second.open_ns < second.close_ns


def test_the_delay_opens_the_window_and_the_duration_counts_from_then(make: Callable[..., _Directed]) -> None:
    director = make(delay=0.05, duration=0.1, kill=signal.SIGTERM)
    assert director.state().phase == "waiting"
    begun = time.monotonic_ns()
    director.begin()
    assert director.finished.wait(PATIENCE_S)
    assert _causes(director) == [("time", "time")]
    (window,) = director.state().windows
    assert window.open_ns >= begun + 50_000_000
    assert window.close_ns >= window.open_ns + 100_000_000
    assert (director.sent, director.woken, director.state().over_by, director.state().killed) == (
        [signal.SIGTERM],
        [True],
        "time",
        True,
    )
    with pytest.raises(CaptureError, match="is over"):
        director.start()


def test_without_kill_no_process_is_killed(make: Callable[..., _Directed]) -> None:
    director = make(duration=0.01)
    director.begin()
    assert director.finished.wait(PATIENCE_S)
    assert (director.sent, director.state().killed) == ([], False)
    _until(lambda: director.woken)


def test_the_duration_waits_for_the_first_window(make: Callable[..., _Directed]) -> None:
    director = make(start_later=True, duration=0.02)
    director.begin()
    assert not director.finished.wait(0.1)
    director.start()
    assert director.finished.wait(PATIENCE_S)
    assert _causes(director) == [("command", "time")]


@pytest.mark.parametrize(("end", "count", "windows"), [("stop-shutdown", 0, 1), ("repeat-shutdown", 3, 3)])
def test_the_last_capture_range_ends_the_recording(
    make: Callable[..., _Directed], agent: Agent, end: str, count: int, windows: int
) -> None:
    director = make(capture_range="cudaProfilerApi", range_end=end, range_count=count)
    director.begin()
    for number in range(windows):
        assert not director.finished.is_set()
        assert agent.open_window(director.control.address, 4) == number + 1  # as a traced program does
        assert agent.close_window(director.control.address, 4) == number + 1
    assert director.finished.wait(PATIENCE_S)
    assert _causes(director) == [("cudaProfilerApi", "cudaProfilerApi")] * windows
    assert director.state().over_by == "cudaProfilerApi"


@pytest.mark.parametrize(("end", "count"), [("stop", 0), ("repeat", 1), ("none", 0)])
def test_other_capture_ranges_do_not(
    make: Callable[..., _Directed], agent: Agent, end: str, count: int
) -> None:
    director = make(capture_range="nvtx", nvtx_capture="x", range_end=end, range_count=count)
    director.begin()
    agent.open_window(director.control.address, 3)
    agent.close_window(director.control.address, 3)
    assert (director.state().phase, director.finished.is_set()) == ("paused", False)


def test_a_window_whose_process_is_gone_is_closed(make: Callable[..., _Directed], agent: Agent) -> None:
    director = make(capture_range="cudaProfilerApi", range_end="repeat")
    director.begin()
    agent.open_window(director.control.address, 4)
    gone = subprocess.Popen(["true"])
    gone.wait()
    ctypes.c_uint32.from_address(director.control.address + WINDOWS + 24).value = gone.pid
    _until(lambda: director.state().phase == "paused")
    assert _causes(director) == [("cudaProfilerApi", "end")]
    agent.open_window(director.control.address, 4)
    ctypes.c_uint32.from_address(director.control.address + WINDOWS + 32 + 24).value = os.getpid()
    time.sleep(2 * WATCH_S)
    assert director.state().phase == "recording"


def test_a_flight_recorder_goes_on_after_a_save(make: Callable[..., _Directed]) -> None:
    director = make(keep_last=0.05)
    director.begin()
    time.sleep(0.1)
    assert director.save(10) == 1  # there is no more than keep_last
    assert director.state().phase == "recording"
    time.sleep(0.02)
    assert director.save(0.01) == 2
    time.sleep(0.06)
    director.end()
    first, second, third = director.state().windows
    assert _causes(director) == [("start", "keep"), ("start", "keep"), ("start", "end")]
    assert first.close_ns - first.open_ns == 50_000_000
    assert second.close_ns - second.open_ns == 10_000_000
    assert first.close_ns < second.open_ns
    assert third.close_ns - third.open_ns == 50_000_000  # what is kept at the end


def test_a_save_soon_after_another_holds_what_is_new(make: Callable[..., _Directed]) -> None:
    director = make(keep_last=60)
    director.begin()
    assert [director.save(60), director.save(60)] == [1, 2]
    first, second, third = director.state().windows
    assert first.close_ns == second.open_ns
    assert second.close_ns == third.open_ns
    assert (third.close_ns, director.state().phase) == (0, "recording")


def test_a_save_of_another_recording_cuts_and_stops_it(make: Callable[..., _Directed]) -> None:
    director = make()
    director.begin()
    time.sleep(0.03)
    assert [director.save(0.01), director.save(0.01)] == [1, 0]
    (window,) = director.state().windows
    assert (window.close_ns - window.open_ns, window.closed_by, director.state().phase) == (
        10_000_000,
        "keep",
        "paused",
    )


def test_a_full_spool_closes_the_window_for_good(make: Callable[..., _Directed], agent: Agent) -> None:
    director = make(max_size=1 << 20)
    director.begin()
    ctypes.c_uint64.from_address(director.control.address + OVER).value = 3  # as agents count
    _until(lambda: director.state().full)
    assert (_causes(director), director.state().phase) == ([("start", "max-size")], "paused")
    assert not director.finished.is_set()
    with pytest.raises(CaptureError, match="--max-size"):
        director.start()


def test_shutdown_counts_once_and_from_any_thread(make: Callable[..., _Directed]) -> None:
    director = make(kill=signal.SIGTERM)
    director.begin()
    threads = [threading.Thread(target=director.shutdown, args=("command",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (director.sent, _causes(director), director.state().phase) == (
        [signal.SIGTERM],
        [("start", "command")],
        "over",
    )
    director.end()
    assert director.state().over_by == "command"


def test_after_the_control_file_was_written_anew_all_of_them_are_changed(
    make: Callable[..., _Directed], tmp_path: Path
) -> None:
    director = make(start_later=True)
    director.start()
    director.control.write_again(tmp_path / "again")
    assert director.stop() == 1
    early, late = director.control.addresses
    assert [ctypes.c_uint32.from_address(address + 88).value for address in (early, late)] == [2, 2]


def test_at_the_end_the_last_control_file_has_the_windows_of_all(
    make: Callable[..., _Directed], agent: Agent, tmp_path: Path
) -> None:
    director = make(capture_range="nvtx", nvtx_capture="x", range_end="repeat")
    director.begin()
    (early,) = director.control.addresses
    agent.open_window(early, 3)
    agent.close_window(early, 3)
    director.control.write_again(tmp_path / "again")
    late = director.control.address
    for address in (early, late, early):  # processes of before and after
        agent.open_window(address, 3)
        agent.close_window(address, 3)
    agent.open_window(early, 3)
    agent.open_window(late, 3)
    director.end()
    windows = director.state().windows
    assert _causes(director) == [("nvtx", "nvtx")] * 4 + [("nvtx", "end")]
    assert all(first.close_ns <= second.open_ns for first, second in itertools.pairwise(windows))
    agent.open_window(early, 3)
    assert len(director.state().windows) == 5


def test_a_delay_comes_before_capture_ranges(make: Callable[..., _Directed]) -> None:
    director = make(capture_range="cudaProfilerApi", delay=0.02)

    def trigger() -> int:
        return int(ctypes.c_uint32.from_address(director.control.address + TRIGGER).value)

    assert (trigger(), director.state().phase) == (0, "waiting")
    director.begin()
    _until(lambda: trigger() == 2)
    director.end()
    assert (trigger(), director.state().windows) == (0, ())


def test_windows_of_commands_are_no_capture_ranges(make: Callable[..., _Directed], agent: Agent) -> None:
    director = make(capture_range="cudaProfilerApi", range_end="stop-shutdown")
    director.begin()
    director.start()
    director.stop()
    assert not director.finished.wait(5 * POLL_S)
    agent.open_window(director.control.address, 4)
    agent.close_window(director.control.address, 4)
    assert director.finished.wait(PATIENCE_S)


@pytest.mark.slow
def test_a_spoilt_control_file_does_no_harm(make: Callable[..., _Directed]) -> None:
    director = make(delay=0.01, duration=0.5, max_size=1 << 20)
    director.begin()
    ctypes.memset(director.control.address + 8, 0xFF, FILE_SIZE - 8)
    _until(lambda: director.state().full)
    director.save(1.0)
    director.shutdown()
    assert director.state().phase in ("recording", "over")


def test_as_many_windows_as_there_is_room_for(make: Callable[..., _Directed]) -> None:
    director = make(start_later=True)
    for _ in range(8192):
        director.start()
        director.stop()
    with pytest.raises(
        CaptureError, match="No other window can be opened: a recording has 8,192 of them at most"
    ):
        director.start()
    assert len(director.state().windows) == 8192
