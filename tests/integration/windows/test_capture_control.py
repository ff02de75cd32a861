"""When to record, as users say it: real programs under `warplens profile` with capture ranges, delays and limits."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import (
    SHEBANG,
    alive,
    codes,
    environment,
    given_time,
    start_profile,
    until,
    warplens,
)
from tests.support.thorough import few
from warplens.handover.pending import living_writer
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native")

# Steps of a program: `step` in two domains around an `inner`, `between` them; then what a test adds.
STEPS = """
import os, signal, sys, time
import warplens
from warplens import nvtx

def steps(count):
    for number in range(count):
        with nvtx.annotate("step", domain="train"), nvtx.annotate("step"):
            with nvtx.annotate(f"inner {number}"):
                pass
            nvtx.mark(f"mark {number}")
        with nvtx.annotate("between"):
            pass

def until(path):
    end = time.monotonic() + 100
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.005)

"""


def _program(path: Path, text: str) -> Path:
    path.write_text(f"{SHEBANG}{STEPS}{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


def _profile(cwd: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return warplens("profile", "-o", "x", *words, cwd=cwd)


def _windows(cwd: Path) -> list[tuple[str, str | None]]:
    with open_report(cwd / "x.warplens") as report:
        return [(row["opened_by"], row["closed_by"]) for row in _rows(report.table("capture_windows"))]


def _ranges(cwd: Path, table: str = "nvtx_ranges") -> list[str]:
    with open_report(cwd / "x.warplens") as report:
        rows = sorted(_rows(report.table(table)), key=lambda row: (row["start"], -row.get("end", 0)))
        return [f"{row['message']}@{row['domain']}" if row["domain"] else row["message"] for row in rows]


def _rows(table: Any) -> Sequence[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_the_first_capture_range_and_nothing_else(tmp_path: Path) -> None:
    done = _profile(
        tmp_path,
        "-q",
        "-c",
        "nvtx",
        "-p",
        "step",
        _program(tmp_path / "p", "steps(3); print('all'); sys.exit(7)"),
    )
    assert (done.returncode, done.stdout) == (7, "all\n")
    assert _windows(tmp_path) == [("nvtx", "nvtx")]
    # the outer one was open when the window began
    assert sorted(_ranges(tmp_path)) == ["inner 0", "step", "step@train"]
    assert _ranges(tmp_path, "nvtx_marks") == ["mark 0"]


@pytest.mark.parametrize(
    ("pattern", "end", "windows", "inner"),
    few(
        [
            ("step@train", "repeat:2", 2, 2),
            ("step", "none", 1, 4),
            ("step@*", "repeat", 4, 4),
            ("inner 2", "stop", 1, 1),
            ("step@train", "repeat:2:sync", 2, 2),
        ],
        2,
    ),
)
def test_capture_ranges(pattern: str, end: str, windows: int, inner: int, tmp_path: Path) -> None:
    words = ("-c", "nvtx", "-p", pattern, "--capture-range-end", end)
    done = _profile(tmp_path, "-q", *words, _program(tmp_path / "p", "steps(4); sys.exit(7)"))
    assert done.returncode == 7, done.stderr
    assert _windows(tmp_path) == [("nvtx", "end" if end == "none" else "nvtx")] * windows
    assert sum(name.startswith("inner") for name in _ranges(tmp_path)) == inner


def test_in_c_a_registered_message_matches_too(tmp_path: Path, target: Any) -> None:
    done = _profile(tmp_path, "-q", "-c", "nvtx", "-p", "registered@train", target("capture_control"))
    assert (done.returncode, done.stdout) == (3, "done\n"), done.stderr
    assert _windows(tmp_path) == [("nvtx", "nvtx")]
    assert _ranges(tmp_path) == ["registered@train", "inside"]


@pytest.mark.parametrize("end", few(["repeat-shutdown:2", "stop-shutdown"]))
def test_a_shutdown_writes_the_report_while_the_program_goes_on(end: str, tmp_path: Path) -> None:
    text = "steps(3); open('ready', 'w'); until('go'); steps(5); print('all'); sys.exit(7)"
    run = start_profile(
        tmp_path, "-c", "nvtx", "-p", "step", "--capture-range-end", end, _program(tmp_path / "p", text)
    )
    try:
        report = tmp_path / "x.warplens"
        until(lambda: (tmp_path / "ready").exists(), "the program")
        until(lambda: any((report / "manifest.d").glob("*.json")), "the report")
        assert run.poll() is None
        count = 1 if end == "stop-shutdown" else 2
        assert _windows(tmp_path) == [("nvtx", "nvtx")] * count
        assert sum(name.startswith("inner") for name in _ranges(tmp_path)) == count
    finally:
        (tmp_path / "go").touch()
    out, errors = run.communicate(timeout=60)
    assert (run.returncode, out) == (7, "all\n")
    assert "the recording is over, and its report is being written" in errors
    assert "continues" in errors
    assert "still-running" not in codes(tmp_path / "x.warplens")


CHILD = """
child = os.fork()
if child == 0:
    with open("child.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("child.new", "child")
    until("never")
    os._exit(0)
until("child")
"""


@pytest.mark.parametrize(("kill", "status"), few([("sigterm", 143), ("sigkill", 137), ("2", 130)]))
def test_whom_the_end_of_the_recording_kills(kill: str, status: int, tmp_path: Path) -> None:
    words = ("-c", "nvtx", "-p", "step", "--capture-range-end", "stop-shutdown", "--kill", kill)
    done = _profile(tmp_path, *words, _program(tmp_path / "p", f"{CHILD}\nsteps(1); until('never')"))
    assert done.returncode == status, done.stderr
    assert f"got {signal.Signals(status - 128).name}" in done.stderr
    assert not alive(int((tmp_path / "child").read_text()))
    assert _windows(tmp_path) == [("nvtx", "nvtx")]


def _said_something(done: subprocess.CompletedProcess[str]) -> bool:
    return done.stdout != ""


def test_a_program_that_ends_by_itself_when_told_is_128_plus_the_signal_all_the_same(tmp_path: Path) -> None:
    text = (
        "signal.signal(signal.SIGTERM, lambda number, frame: (print('bye'), "
        "sys.exit(0)))\nsteps(1); until('never')"
    )
    path = _program(tmp_path / "p", text)
    done = given_time(
        lambda seconds: _profile(tmp_path, "-q", "-f", "--duration", f"{seconds}", "--kill=sigterm", path),
        _said_something,
        0.5,
    )
    assert (done.returncode, done.stdout) == (143, "bye\n")
    assert _windows(tmp_path) == [("start", "time")]


def test_a_program_that_has_ended_before_is_not_killed(tmp_path: Path) -> None:
    done = _profile(
        tmp_path,
        "-q",
        "--duration",
        "30",
        "--kill=sigterm",
        _program(tmp_path / "p", "steps(1); sys.exit(7)"),
    )
    assert done.returncode == 7
    assert _windows(tmp_path) == [("start", "end")]


def test_a_window_whose_process_was_killed_makes_way_for_the_next(tmp_path: Path) -> None:
    text = """
pid = os.fork()
if pid == 0:
    nvtx.push_range("step", domain="train")
    nvtx.push_range("inside")
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(pid, 0)
end = time.monotonic() + 100
while not os.path.exists("x.warplens/manifest.d") or not os.listdir("x.warplens/manifest.d"):
    steps(1)
    time.sleep(0.01)
    assert time.monotonic() < end
"""
    words = ("-c", "nvtx", "-p", "step@train", "--capture-range-end", "repeat-shutdown:2")
    done = _profile(tmp_path, "-q", *words, _program(tmp_path / "p", text))
    assert done.returncode == 0, done.stderr
    assert _windows(tmp_path) == [("nvtx", "end"), ("nvtx", "nvtx")]


def test_kill_also_ends_processes_left_running(tmp_path: Path) -> None:
    path = _program(tmp_path / "p", f"{CHILD}\nsys.exit(7)")

    def run(seconds: float) -> subprocess.CompletedProcess[str]:
        (tmp_path / "child").unlink(missing_ok=True)
        return _profile(tmp_path, "-f", "--duration", f"{seconds}", "--kill=sigterm", path)

    done = given_time(run, lambda done: done.returncode == 7, 0.7)
    assert (done.returncode, _windows(tmp_path)) == (7, [("start", "time")])
    assert "child processes of p got SIGTERM" in done.stderr
    assert not alive(int((tmp_path / "child").read_text()))


def test_a_delay_and_a_duration(tmp_path: Path) -> None:
    text = """
begun = time.monotonic()
while not os.path.exists("x.warplens/manifest.d") or not os.listdir("x.warplens/manifest.d"):
    steps(1)
    time.sleep(0.001)
    assert time.monotonic() < begun + 100
sys.exit(7)
"""
    path = _program(tmp_path / "p", text)

    def run(seconds: float) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(tmp_path / "x.warplens", ignore_errors=True)
        return _profile(tmp_path, "-q", "--delay", f"{seconds}", "-d", f"{seconds}", path)

    done = given_time(run, lambda _: len(_ranges(tmp_path)) > 10, 0.2)
    assert done.returncode == 7, done.stderr
    assert _windows(tmp_path) == [("time", "time")]
    with open_report(tmp_path / "x.warplens") as report:
        (window,) = _rows(report.table("capture_windows"))
        assert window["end"] - window["start"] >= 200_000_000
        ranges = _rows(report.table("nvtx_ranges"))
        assert len(ranges) > 10
        assert all(row["start"] < window["end"] and row["end"] > window["start"] for row in ranges)
        assert all(
            window["start"] <= row["start"] <= window["end"] for row in _rows(report.table("nvtx_marks"))
        )


def test_a_program_that_ends_within_the_delay(tmp_path: Path) -> None:
    done = _profile(tmp_path, "--delay", "60", _program(tmp_path / "p", "steps(1); sys.exit(7)"))
    assert (done.returncode, _windows(tmp_path), _ranges(tmp_path)) == (7, [], [])
    assert "within the --delay of 60 s" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "said"),
    few(
        [
            (("-c", "nvtx", "-p", "Step"), "no NVTX range called 'Step' in the default domain began"),
            (("-c", "nvtx", "-p", "inne 0@train"), "Similar names in the recording: 'inner 0'"),
            (("-c", "nvtx", "-p", "epoch@*"), "no NVTX range called 'epoch' in any domain began"),
            (("-c", "cudaProfilerApi"), "no process of the program called cudaProfilerStart"),
        ],
        step=3,
    ),
)
def test_a_capture_range_that_never_comes_is_told(words: Sequence[str], said: str, tmp_path: Path) -> None:
    done = _profile(tmp_path, *words, _program(tmp_path / "p", "steps(2); sys.exit(7)"))
    assert done.returncode == 7
    assert said in " ".join(done.stderr.split())
    assert (_windows(tmp_path), _ranges(tmp_path)) == ([], [])
    assert codes(tmp_path / "x.warplens").count("capture-range-not-seen") == 1


@pytest.mark.parametrize(
    ("words", "names"),
    few(
        [
            (("--nvtx-domain-include", "train"), {"step@train"}),
            (("--nvtx-domain-exclude", "default"), {"step@train"}),
            (("--nvtx-domain-exclude=train",), {"step", "inner 0", "between"}),
            (("--nvtx-domain-include=default,other",), {"step", "inner 0", "between"}),
        ],
        step=2,
    ),
)
def test_domains(words: Sequence[str], names: set[str], tmp_path: Path) -> None:
    done = _profile(tmp_path, "-q", *words, _program(tmp_path / "p", "steps(1)"))
    assert done.returncode == 0, done.stderr
    assert set(_ranges(tmp_path)) == names


PROFILER = """
def marked(number):
    with nvtx.annotate(f"marked {number}"):
        pass
marked(0)
with warplens.CudaProfiler():
    marked(1)
marked(2)
warplens.CudaProfiler.start()
marked(3)
warplens.CudaProfiler.stop()
with warplens.capture():
    marked(4)
    with warplens.capture():
        marked(5)
    marked(6)
@warplens.capture
def decorated():
    marked(7)
decorated()
marked(8)
with warplens.capture():
    pid = os.fork()
    if pid == 0:
        sys.exit(0)  # leaves the block, which is the parent's
    os.waitpid(pid, 0)
    marked(9)
sys.exit(7)
"""


@pytest.mark.parametrize(
    "words", [("-c", "cudaProfilerApi", "--capture-range-end", "repeat"), ("--start-later",)]
)
def test_windows_from_python(words: Sequence[str], tmp_path: Path) -> None:
    done = _profile(tmp_path, "-q", *words, _program(tmp_path / "p", PROFILER))
    assert done.returncode == 7, done.stderr
    assert set(_windows(tmp_path)) == {("cudaProfilerApi", "cudaProfilerApi")}
    assert len(_windows(tmp_path)) == 5
    assert _ranges(tmp_path) == [f"marked {number}" for number in (1, 3, 4, 5, 6, 7, 9)]


def test_windows_from_python_are_nothing_elsewhere(tmp_path: Path) -> None:
    path = _program(tmp_path / "p", PROFILER)
    plain = subprocess.run(
        [sys.executable, path],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (plain.returncode, plain.stdout, plain.stderr) == (7, "", "")
    assert _profile(tmp_path, "-q", path).returncode == 7
    assert _windows(tmp_path) == [("start", "end")]
    assert len(_ranges(tmp_path)) == 10


@pytest.mark.parametrize("words", few(map(pytest.param, [("--delay", "60"), (), ("--duration", "0.1")]), 2))
def test_ctrl_c_is_for_the_program_in_every_state(words: Sequence[str], tmp_path: Path) -> None:
    text = """
signal.signal(signal.SIGINT, lambda number, frame: (steps(1), sys.exit(9)))
steps(1)
time.sleep(0.3)
open("ready", "w").write(str(os.getpid()))
until("never")
"""
    run = start_profile(tmp_path, *words, _program(tmp_path / "p", text))
    until(lambda: (tmp_path / "ready").exists(), "the program")
    if words and words[0] == "--duration":
        until(lambda: any((tmp_path / "x.warplens" / "manifest.d").glob("*.json")), "the report")
    os.kill(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 9, errors
    assert _windows(tmp_path) == {(): [("start", "end")], ("--delay", "60"): []}.get(
        tuple(words), [("start", "time")]
    )
    if "--duration" not in words:  # it may be over before the program says anything
        assert _ranges(tmp_path).count("between") == (0 if words else 2)


def test_a_flight_recorder_keeps_the_last_seconds(tmp_path: Path) -> None:
    text = "steps(1); time.sleep(0.8); nvtx.push_range('late'); sys.exit(7)"
    done = _profile(tmp_path, "-q", "--keep-last", "0.5", _program(tmp_path / "p", text))
    assert done.returncode == 7, done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        (window,) = _rows(report.table("capture_windows"))
        assert window["end"] - window["start"] == 500_000_000
    assert _ranges(tmp_path) == ["late"]
    assert _ranges(tmp_path, "nvtx_marks") == []


def test_a_flight_recorder_of_a_server_keeps_no_spools_of_those_long_gone(tmp_path: Path) -> None:
    """Its disk does not fill up with them; they are listed, and the report names what was given up."""
    text = """
from pathlib import Path
spool = Path(os.environ["WARPLENS_SPOOL"])
def worker():
    if os.fork() == 0:
        steps(1)
        os._exit(0)
    os.wait()
for number in range(20):
    worker()
before = len(list(spool.glob("*.spool")))
end = time.monotonic() + 100
while len(list(spool.glob("*.spool"))) > 1 and time.monotonic() < end:
    time.sleep(0.05)
    steps(1)
worker()
print(before, len(list(spool.glob("*.spool"))))
"""
    done = _profile(tmp_path, "--keep-last", "0.5", _program(tmp_path / "p", text))
    assert (done.returncode, done.stdout) == (0, "20 2\n"), done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        (note,) = [row for row in _rows(report.table("diagnostics")) if row["code"] == "ended-before"]
        rows = _rows(report.table("processes"))
        start = report.origin
    assert (note["count"], note["severity"]) == (20, "info")
    assert note["time"] > start
    assert "What 20 processes had recorded was dropped: all of them ended before" in note["message"]
    gone = [row["not_recorded"] for row in rows if row["not_recorded"]]
    assert len(gone) >= 20
    assert all(why.endswith("or ended before the time that --keep-last keeps") for why in gone)


def test_dropped_processes_are_counted_after_a_killed_launcher(tmp_path: Path) -> None:
    text = """
from pathlib import Path
spool = Path(os.environ["WARPLENS_SPOOL"])
for number in range(3):
    if os.fork() == 0:
        steps(1)
        os._exit(0)
    os.wait()
steps(1)
until("go on")
"""
    run = start_profile(tmp_path, "--keep-last", "0.5", _program(tmp_path / "p", text))
    launched = tmp_path / "x.warplens" / "spool"
    until(
        lambda: "ended-before" in "".join(path.read_text() for path in launched.glob("*/launch.json")),
        "the launcher's note",
    )
    run.kill()
    run.wait()
    (tmp_path / "go on").touch()
    until(lambda: not any(map(living_writer, launched.glob("*/*.spool"))), "the program's end")
    run.communicate()  # the program had its output, too
    assert "ended-before" in codes(tmp_path / "x.warplens")


def test_a_flight_recorder_with_a_limit_records_on(tmp_path: Path) -> None:
    """The limit is reached at once; what was last is there, and the report says from when on everything is."""
    text = """
for number in range(60):
    steps(1000)
nvtx.mark("the last one")
"""
    done = _profile(tmp_path, "--keep-last", "600", "--max-size", "2M", _program(tmp_path / "p", text))
    assert done.returncode == 0, done.stderr
    assert _windows(tmp_path) == [("start", "end")]
    assert _ranges(tmp_path, "nvtx_marks")[-1] == "the last one"
    assert {"given-up", "kept-less", "max-size"} <= set(codes(tmp_path / "x.warplens"))
    assert "there was no room for all that --keep-last asks for" in " ".join(done.stderr.split())


def test_a_recording_that_is_full_ends_and_the_program_does_not(tmp_path: Path) -> None:
    text = """
from pathlib import Path
from warplens.recording.agent.control_file import ControlPage
control = ControlPage(Path(os.environ["WARPLENS_SPOOL"]) / "control")
end = time.monotonic() + 100
while not control.windows()[0].close_ns:
    steps(100)
    assert time.monotonic() < end
sys.exit(7)
"""
    done = _profile(tmp_path, "--max-size", "2M", _program(tmp_path / "p", text))
    assert done.returncode == 7, done.stderr
    assert _windows(tmp_path) == [("start", "max-size")]
    assert re.search(
        r"reached its --max-size of 2 MiB [\d.]+ m?s after it began, and stopped there",
        " ".join(done.stderr.split()),
    )
    assert len(_ranges(tmp_path)) > 1000
