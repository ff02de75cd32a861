"""What the agent records while windows of the capture open and close: edges, triggers, filters, forks. Spools are read raw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.capturing import CLIPPED, Capture, steps

pytestmark = [pytest.mark.require("gcc")]
Target = Callable[..., Path]


@pytest.fixture
def program(target: Target) -> Path:
    """The program that does as it is told."""
    return target("nvtx_steps")


def flags(capture: Capture) -> dict[str | None, bool]:
    """By name: whether each range that was written is clipped."""
    return {record.name: bool(record["flags"] & CLIPPED) for record in capture.records("range", "start_end")}


def test_ranges_are_kept_where_they_overlap_a_window(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    with steps(program, capture) as do:
        do(
            "push - a over-all",
            "start 0 - a started-before",
            "push - a before",
            "pop -",
            "mark - a early",
            "push - a into",
        )
        assert capture.open() == 1
        assert do(
            "pop -", "push - a within", "pop -", "mark - a mark", "end 0", "start 1 - a started-within"
        ) == [1, 1, 1, 0, 0, 1]
        do("push - a out-of", "sample - 7", "acquire -")
        assert capture.close() == 1
        assert (
            do(
                "pop -",
                "push - a behind",
                "pop -",
                "mark - a late",
                "end 1",
                "sample - 8",
                "acquire -",
                "pop -",
                "pop -",
            )[-1]
            == -1
        )
    assert capture.names("mark") == ["mark"]
    assert flags(capture) == {
        "over-all": True,
        "started-before": True,
        "into": True,
        "within": False,
        "started-within": True,
        "out-of": True,
    }
    assert [record.number for record in capture.records("sample")] == [7.0]
    assert len(capture.records("operation")) == 1
    (window,) = capture.windows()
    assert (window.opened_by, window.closed_by, window.pid) == ("command", "command", 0)
    for record in capture.records("range", "start_end"):
        assert record["start"] < window.close_ns
        assert record["end"] > window.open_ns
        assert bool(record["flags"] & CLIPPED) == (
            record["start"] < window.open_ns or record["end"] > window.close_ns
        )


def test_a_thread_that_slept_through_windows_still_writes_its_range(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    with steps(program, capture) as do:
        do("push - a long", "push - a inner", "push - a gone", "pop -")
        for number in (1, 2, 3):
            assert (capture.open(), capture.close()) == (number, number)
        do("pop -", "pop -", "push - a after", "pop -")
        capture.open()
        do("push - a fourth", "pop -")
    assert flags(capture) == {"inner": True, "long": True, "fourth": False}


def test_windows_open_once_and_close_once(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "spool", open=True)
    assert (capture.open(), capture.close(), capture.close(), capture.open(), capture.open()) == (
        0,
        1,
        0,
        2,
        0,
    )
    first, second = capture.windows()
    assert 0 < first.open_ns < first.close_ns <= second.open_ns
    assert second.close_ns == 0
    assert (first.opened_by, first.closed_by, second.opened_by) == ("start", "command", "command")


def test_without_a_control_file_everything_is_recorded(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    (tmp_path / "spool" / "control").unlink()
    with steps(program, capture) as do:
        do("push - a range", "pop -", "mark - a mark")
    assert capture.names() == ["range", "mark"]


def test_a_closed_capture_writes_next_to_nothing(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    with steps(program, capture) as do:
        do("pushp - first", "popp -")
        do("many 20000 pushp - outer;pushp - inner;markp - mark;popp -;popp -;sample - 1;start 0 - a s;end 0")
        assert capture.size() <= 512 << 10
        capture.open()
        do("pushp - seen", "popp -")
    (seen,) = capture.records("range")
    assert seen.name == "seen"
    assert [len(blob.data) for blob in seen.blobs] == [512, 512]


def test_payloads_from_before_the_window_are_there(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    with steps(program, capture) as do:
        do("pushp - outer", "pushp - dropped", "pop -", "pushp - middle")
        capture.open()
        do("popp -", "pop -")
    found = {record.name: [len(blob.data) for blob in record.blobs] for record in capture.records("range")}
    assert found == {"middle": [512, 512], "outer": [512]}


def test_events_of_the_past_are_kept_by_their_own_times(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    with steps(program, capture) as do:
        (before,) = do("now")
        capture.open()
        (within,) = do("now")
        capture.close()
        (behind,) = do("now")
        do(
            f"deferred - early {before - 10} {before}",
            f"deferred - across {before} {within}",
            f"deferred - all {before} {behind}",
        )
        do(f"deferred - late {behind} {behind + 5}", f"deferred - inside {within - 1} {within}")
    assert flags(capture) == {"across": True, "all": True, "inside": False}


def test_a_fork_child_judges_inherited_ranges_for_itself(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool")
    with steps(program, capture) as do:
        do("push - a parent", "start 0 - a started")
        capture.open()
        do("fork many 1 push - a child;pop -;pop -;end 0")
        capture.close()
        do("fork many 1 push - a later;pop -;pop -;end 0", "push - a own", "pop -", "pop -", "end 0")
    assert sorted((str(record.name), record["flags"] & 0x30) for record in capture.records("range", "start_end")) == [
        ("child", 0), ("parent", 0x10), ("parent", CLIPPED), ("started", 0x10), ("started", CLIPPED),
    ]  # fmt: skip


def test_profiler_calls_open_windows_up_to_the_limit(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=2, window_limit=2)
    with steps(program, capture) as do:
        assert do("profiler stop", "profiler start", "profiler start", "profiler stop", "profiler stop") == [
            0,
            1,
            0,
            1,
            0,
        ]
        capture.open()
        assert do("profiler stop") == [0]  # it is not theirs
        capture.close()
        assert do("profiler start", "push - a second", "pop -", "profiler stop", "profiler start") == [
            1,
            0,
            0,
            1,
            0,
        ]
    assert [(w.opened_by, w.closed_by) for w in capture.windows()] == [
        ("cudaProfilerApi", "cudaProfilerApi"), ("command", "command"), ("cudaProfilerApi", "cudaProfilerApi"),
    ]  # fmt: skip
    assert capture.names() == ["second"]


def test_profiler_calls_do_nothing_where_nobody_asked(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="x")
    with steps(program, capture) as do:
        assert do("profiler start", "profiler stop") == [0, 0]
    capture = Capture(tmp_path / "stays", trigger=2, trigger_closes=False)
    with steps(program, capture) as do:
        assert do("profiler start", "profiler stop", "mark - a mark") == [1, 0, 0]
    assert capture.names() == ["mark"]


NESTED = (
    "push - a outside",
    "push - a before",
    "pop -",
    "{begin}",
    "push - a within",
    "pop -",
    "{end}",
    "push - a after",
    "pop -",
    "pop -",
)


@pytest.mark.parametrize(
    ("settings", "begin", "end"),
    [
        ({}, "push - a capture", "pop -"),
        ({}, "push - w capture", "pop -"),
        ({}, "push - r capture", "pop -"),
        ({}, "start 0 - a capture", "end 0"),
        ({}, "start 0 - w capture", "thread end 0"),
        ({}, "pushp - capture", "popp -"),
        ({"domain": "mine"}, "push mine a capture", "pop mine"),
        ({"domain": "mine"}, "start 0 mine r capture", "thread end 0"),
        ({"any_domain": True}, "push other r capture", "pop other"),
        ({"any_domain": True}, "push - a capture", "pop -"),
    ],
)
def test_a_range_opens_a_window_around_itself(
    tmp_path: Path, program: Path, settings: dict[str, Any], begin: str, end: str
) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture", **settings)
    with steps(program, capture) as do:
        do(*(line.format(begin=begin, end=end) for line in NESTED))
        assert len(capture.windows()) == 1
        assert capture.control.gate() == 2
        pid = do.process.pid
    assert flags(capture) == {"outside": True, "capture": False, "within": False}
    (window,) = capture.windows()
    assert (window.opened_by, window.closed_by, window.pid) == ("nvtx", "nvtx", pid)


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, ["push mine a capture", "pop mine"]),
        (
            {"domain": "mine"},
            [
                "push - a capture",
                "pop -",
                "push other a capture",
                "pop other",
                "start 0 other a capture",
                "end 0",
            ],
        ),
        (
            {"any_domain": True},
            ["push - a capture2", "pop -", "mark - a capture", "push mine a Capture", "pop mine"],
        ),
    ],
)
def test_a_range_that_does_not_match_opens_no_window(
    tmp_path: Path, program: Path, settings: dict[str, Any], lines: list[str]
) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture", **settings)
    with steps(program, capture) as do:
        do(*lines)
    assert (capture.control.gate(), capture.names()) == (0, [])


def test_only_the_range_that_opened_the_window_closes_it(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture")
    with steps(program, capture) as do:
        do(
            "push - a capture",
            "push - a capture",
            "pop -",
            "start 0 - a capture",
            "end 0",
            "thread push - a capture",
        )
        assert capture.control.gate() == 1
        do("push mine a x", "pop -")  # below another domain's range
        assert capture.control.gate() == 2
        do("start 0 - a capture")
        assert capture.control.gate() == 3
        capture.close()
        do(
            "start 1 - a capture", "end 0"
        )  # its own window is closed already; the other's is not its to close
        assert capture.control.gate() == 5
        do("end 1")
    assert capture.control.gate() == 6


def test_a_limit_bounds_what_the_trigger_opens(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture", window_limit=2)
    with steps(program, capture) as do:
        do(*(["push - a capture", "pop -"] * 4))
        assert capture.open() == 3
    assert capture.names() == ["capture", "capture"]


def test_a_window_may_outlive_its_trigger(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture", trigger_closes=False)
    with steps(program, capture) as do:
        do("mark - a before", "push - a capture", "pop -", "mark - a after")
    assert capture.names() == ["capture", "after"]
    assert capture.control.gate() == 1


def test_a_window_closes_without_the_end_of_its_range(tmp_path: Path, program: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture")
    with steps(program, capture) as do:
        do("thread push - a capture")  # the thread ends
        assert capture.control.gate() == 2
        do("push - a capture", "fork pop -")  # the child's copy is another range
        assert capture.control.gate() == 3
        do("pop -", "start 0 - a capture", "fork end 0")
        assert capture.control.gate() == 5
    assert capture.control.gate() == 6  # the process ended
    with steps(program, capture) as do:
        do("push - a capture", "exec", "push - a behind", "pop -", "push - a capture", "pop -")
    assert capture.control.gate() == 10
    with steps(program, capture) as do:
        do("push - a capture", "kill")
        do.process.wait(timeout=60)
        assert capture.control.gate() == 11
        assert capture.agent.close_abandoned_window(capture.control.address) == 6
        do.process.returncode = 0
    assert capture.windows()[-1].closed_by == "end"
    with steps(program, capture) as do:
        do("push - a capture")
        assert capture.agent.close_abandoned_window(capture.control.address) == 0


@pytest.mark.parametrize(
    ("kind", "names", "kept"),
    [(1, ("mine",), "mine"), (2, ("", "other"), "mine"), (1, ("",), "-"), (2, ("mine", "other"), "-")],
)
def test_domains_are_left_out(
    tmp_path: Path, program: Path, kind: int, names: tuple[str, ...], kept: str
) -> None:
    capture = Capture(tmp_path / "spool", open=True, filter=kind, domains=names)
    each = (
        "push {} a p",
        "pop {}",
        "mark {} r m",
        "start 0 {} w s",
        "end 0",
        "sample {} 1",
        "acquire {}",
        "pushp {} p",
        "popp {}",
        "markp {} m",
    )
    answers = {}
    with steps(program, capture) as do:
        (now,) = do("now")
        for place in ("mine", "-", "other"):
            answers[place] = do(
                *(line.format(place) for line in (*each, f"deferred {{}} d {now} {now + 1}", "enabled {}"))
            )
    assert answers.pop(kept) == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert all(answer == [-2, -2, 0, 0, 0, 0, 0, -2, -2, 0, 0, 0] for answer in answers.values())
    assert sorted(map(str, capture.names())) == ["d", "m", "m", "p", "p", "s"]
    assert len(capture.records("sample")) == len(capture.records("operation")) == 1


def test_a_trigger_in_a_domain_that_is_left_out_opens_nothing(tmp_path: Path, program: Path) -> None:
    capture = Capture(
        tmp_path / "spool", trigger=1, message="capture", any_domain=True, filter=2, domains=("quiet",)
    )
    with steps(program, capture) as do:
        do("push quiet a capture", "pop quiet")
        assert capture.control.gate() == 0
        do("push loud a capture", "push quiet a hidden", "pop loud", "pop quiet")
    assert capture.names() == ["capture"]
