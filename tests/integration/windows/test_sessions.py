"""Running sessions, led from other terminals: launch, start, stop, status, sessions and shutdown with real programs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import COMMAND, alive, environment, info, until
from tests.support.thorough import few
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native")

# No site-packages: what `pip install --no-deps` gives.
BARE = (sys.executable, "-S", "-m", "warplens")

# Records a range for each line that it reads, and says so: what lies in which window is certain.
OBEDIENT = """
import os, sys
from warplens import nvtx
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    with nvtx.annotate(line.strip()):
        pass
    print("did", line.strip(), flush=True)
sys.exit(7)
"""


class Launched:
    """A program under `warplens launch` or `profile`, that does what it is told."""

    def __init__(self, folder: Path, *words: str, command: Sequence[str] = COMMAND) -> None:
        (folder / "obedient.py").write_text(OBEDIENT, encoding="utf-8")
        self.folder = folder
        self.process = subprocess.Popen(
            [*command, *words, sys.executable, "obedient.py"],
            cwd=folder,
            env=sessions_environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = int(self._line().removeprefix("ready "))

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=60)[1]
        return line.strip()

    def does(self, *names: str) -> None:
        """Have it record the ranges `names`, and return when it has."""
        assert self.process.stdin is not None
        for name in names:
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()
            assert self._line() == f"did {name}"

    def ends(self) -> tuple[int, str]:
        """Let it end; return the launcher's exit code and what it said."""
        errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, errors


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Launched]]:
    """Start a program with `warplens WORDS`; whatever is left of it is ended with the test."""
    started: list[Launched] = []

    def begin(*words: str, command: Sequence[str] = COMMAND) -> Launched:
        started.append(Launched(tmp_path, *words, command=command))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        if alive(one.pid):
            os.kill(one.pid, signal.SIGKILL)
        one.process.wait(30)
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            if stream is not None:
                stream.close()


def sessions_environment(folder: Path) -> dict[str, str]:
    return environment(WARPLENS_RUNTIME_DIR=str(folder / "run"))


def asked(folder: Path, *words: str, command: Sequence[str] = COMMAND) -> subprocess.CompletedProcess[str]:
    """Run `warplens WORDS`, as in another terminal."""
    return subprocess.run(
        [*command, *words],
        cwd=folder,
        env=sessions_environment(folder),
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )


def done(folder: Path, *words: str) -> str:
    """Run `warplens WORDS`, which has to work; return all that it says."""
    result = asked(folder, *words)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def state(folder: Path, *words: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(done(folder, "status", "-f", "json", *words))
    return content


def ranges(report: Path) -> list[str]:
    with open_report(report) as opened:
        return [row["message"] for row in opened.table("nvtx_ranges").to_pylist()]


def so_far(report: Path) -> list[str]:
    """The ranges in the report of a program that still runs."""
    with pytest.warns(UserWarning, match="is still recording"):
        return ranges(report)


def causes(report: Path) -> list[tuple[str, str]]:
    with open_report(report) as opened:
        return [(row["opened_by"], row["closed_by"]) for row in opened.table("capture_windows").to_pylist()]


def test_several_windows_of_one_run(launch: Callable[..., Launched], tmp_path: Path) -> None:
    program = launch("launch", "--light", "-o", "x")
    program.does("before")
    assert state(tmp_path)["phase"] == "waiting"
    assert "recording begins (window 1)" in done(tmp_path, "start")
    program.does("one", "two")
    assert state(tmp_path)["phase"] == "recording"
    assert "is recording for" in done(tmp_path, "start")
    assert "window 1 closed" in done(tmp_path, "stop", "--no-wait")
    program.does("between")
    assert state(tmp_path)["phase"] == "paused"
    assert "(window 2)" in done(tmp_path, "start")
    program.does("three")
    status, errors = program.ends()
    assert status == 7
    assert f"session launch-{program.process.pid} records nothing yet" in errors
    assert ranges(tmp_path / "x.warplens") == ["one", "two", "three"]
    assert causes(tmp_path / "x.warplens") == [("command", "command"), ("command", "end")]
    assert list((tmp_path / "run").iterdir()) == []


def test_a_stop_brings_the_report_up_to_date_while_the_program_goes_on(
    launch: Callable[..., Launched], tmp_path: Path
) -> None:
    program = launch("launch", "--light", "-o", "x")
    done(tmp_path, "start")
    program.does("one")
    said = done(tmp_path, "stop")
    assert "1 range" in said
    assert "x.warplens" in said
    assert so_far(tmp_path / "x.warplens") == ["one"]
    done(tmp_path, "start")
    program.does("two")
    done(tmp_path, "stop")
    assert so_far(tmp_path / "x.warplens") == ["one", "two"]
    program.does("three")
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one", "two"]


def test_a_profile_can_be_stopped_early_and_started_again(
    launch: Callable[..., Launched], tmp_path: Path
) -> None:
    program = launch("profile", "--light", "-o", "x", "--session-new", "mine")
    program.does("one")
    done(tmp_path, "stop", "--session", "mine", "--no-wait")
    program.does("two")
    done(tmp_path, "start", "--session", "mine")
    program.does("three")
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one", "three"]
    assert causes(tmp_path / "x.warplens") == [("start", "command"), ("command", "end")]


def test_shutdown_finishes_the_report_and_the_program_goes_on(
    launch: Callable[..., Launched], tmp_path: Path
) -> None:
    program = launch("profile", "--light", "-o", "x")
    program.does("one")
    assert "the report is finished" in done(tmp_path, "shutdown")
    assert ranges(tmp_path / "x.warplens") == ["one"]
    assert not (tmp_path / "x.warplens" / "pending.d").exists()
    assert asked(tmp_path, "status").returncode == 2  # the session is over
    program.does("two")
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one"]


def test_shutdown_kills_only_when_asked(launch: Callable[..., Launched], tmp_path: Path) -> None:
    program = launch("profile", "--light", "-o", "x")
    program.does("one")
    done(tmp_path, "shutdown", "--kill", "sigterm")
    assert program.ends()[0] == 128 + signal.SIGTERM
    assert not alive(program.pid)
    assert ranges(tmp_path / "x.warplens") == ["one"]


def test_several_sessions_need_a_name(launch: Callable[..., Launched], tmp_path: Path) -> None:
    first = launch("launch", "--light", "-o", "x", "--session-new", "first")
    second = launch("launch", "--light", "-o", "y", "--session-new", "second")
    refused = asked(tmp_path, "start")
    assert refused.returncode == 2
    assert "first" in refused.stderr
    assert "second" in refused.stderr
    done(tmp_path, "start", "--session", "second")
    first.does("one")
    second.does("two")
    rows = json.loads(done(tmp_path, "sessions", "list", "-f", "json"))
    assert [(row["session"], row["pid"], row["state"]) for row in rows] == [
        ("first", first.process.pid, "waiting"),
        ("second", second.process.pid, "recording"),
    ]
    assert "obedient.py" in done(tmp_path, "sessions")
    first.ends()
    second.ends()
    assert ranges(tmp_path / "x.warplens") == []
    assert ranges(tmp_path / "y.warplens") == ["two"]


def test_a_name_is_for_one_session_and_costs_no_report(
    launch: Callable[..., Launched], tmp_path: Path
) -> None:
    old = launch("profile", "--light", "-o", "old")
    old.does("precious")
    old.ends()
    launch("launch", "--light", "-o", "x", "--session-new", "mine")
    refused = asked(tmp_path, "profile", "--light", "-f", "-o", "old", "--session-new", "mine", "true")
    assert refused.returncode == 2
    assert "A session mine runs already" in refused.stderr
    assert ranges(tmp_path / "old.warplens") == ["precious"]
    assert asked(tmp_path, "profile", "--light", "-o", "z", "--session-new", "a/b", "true").returncode == 2
    assert not (tmp_path / "z.warplens").exists()


def test_names_know_the_fields_of_reports(launch: Callable[..., Launched], tmp_path: Path) -> None:
    launch("launch", "--light", "-o", "x", "--session-new", "s%p")
    assert state(tmp_path)["session"].startswith("s")
    assert state(tmp_path)["session"][1:].isdecimal()


def test_a_killed_launcher_is_told_and_its_report_finished_later(
    launch: Callable[..., Launched], tmp_path: Path
) -> None:
    program = launch("profile", "--light", "-o", "x", "--session-new", "mine")
    program.does("one")
    program.process.kill()
    program.process.wait()
    gone = asked(tmp_path, "status")
    assert gone.returncode == 1
    assert f"The launcher of session mine (process {program.process.pid}) was killed." in gone.stderr
    assert "warplens info" in gone.stderr
    assert json.loads(done(tmp_path, "sessions", "-f", "json"))[0]["state"] == "killed"
    program.does("two")
    assert program.process.stdin is not None
    program.process.stdin.close()
    until(lambda: not alive(program.pid), "the program to end")
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 2
    assert json.loads(done(tmp_path, "sessions", "-f", "json")) == []
    again = launch("launch", "--light", "-o", "y", "--session-new", "other")
    assert [row["session"] for row in json.loads(done(tmp_path, "sessions", "-f", "json"))] == ["other"]
    again.ends()


def test_a_stop_during_the_end_waits_for_the_final_report(
    launch: Callable[..., Launched], tmp_path: Path
) -> None:
    program = launch("profile", "--light", "-o", "x")
    program.does("one")
    stopping = subprocess.Popen(
        [*COMMAND, "stop"],
        cwd=tmp_path,
        env=sessions_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = list(Path(f"/proc/{program.process.pid}/task").glob("*/children"))
    until(
        lambda: len("".join(path.read_text() for path in children).split()) > 1,
        "the child that writes the snapshot",
    )
    os.kill(program.pid, signal.SIGTERM)
    said, errors = stopping.communicate(timeout=60)
    assert stopping.returncode == 0, errors
    assert "x.warplens" in said
    assert program.ends()[0] == 128 + signal.SIGTERM
    assert ranges(tmp_path / "x.warplens") == ["one"]


def test_a_suspended_launcher_is_told_at_once(launch: Callable[..., Launched], tmp_path: Path) -> None:
    program = launch("launch", "--light", "-o", "x")
    os.kill(program.process.pid, signal.SIGSTOP)
    until(
        lambda: "T" in Path(f"/proc/{program.process.pid}/stat").read_text().rpartition(")")[2].split()[0],
        "the launcher to stop",
    )
    refused = asked(tmp_path, "start")
    assert refused.returncode == 1
    assert f"kill -CONT {program.process.pid}" in refused.stderr
    assert "suspended" in done(tmp_path, "sessions")
    os.kill(program.process.pid, signal.SIGCONT)
    done(tmp_path, "start")
    program.does("one")
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one"]


def test_commands_without_a_session_explain_it(launch: Callable[..., Launched], tmp_path: Path) -> None:
    assert "warplens launch PROGRAM" in asked(tmp_path, "start").stderr
    assert asked(tmp_path, "start").returncode == 2
    assert "no session runs" in done(tmp_path, "sessions")
    launch("launch", "--light", "-o", "x")
    refused = asked(tmp_path, "stop")
    assert refused.returncode == 1
    assert "Nothing has been recorded yet" in refused.stderr
    assert "not a number of seconds" in asked(tmp_path, "stop", "--keep", "0").stderr
    assert asked(tmp_path, "shutdown", "--kill", "sigfoo").returncode == 2


def test_a_deleted_runtime_directory_comes_back(launch: Callable[..., Launched], tmp_path: Path) -> None:
    program = launch("launch", "--light", "-o", "x", "--session-new", "mine")
    shutil.rmtree(tmp_path / "run")
    until(lambda: asked(tmp_path, "status").returncode == 0, "the session to be found again")
    done(tmp_path, "start", "--session", "mine")
    program.does("one")
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one"]
    assert list((tmp_path / "run").iterdir()) == []


def test_without_a_place_for_the_session_the_program_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    result = asked(tmp_path, "profile", "--light", "-o", "x", "sh", "-c", "exit 3")
    assert result.returncode == 3
    assert "no-session" in {row["code"] for row in info(tmp_path / "x.warplens")["diagnostics"]}
    refused = asked(tmp_path, "profile", "--light", "-o", "y", "--session-new", "mine", "true")
    assert refused.returncode == 1
    assert "WARPLENS_RUNTIME_DIR" in refused.stderr
    assert not (tmp_path / "y.warplens").exists()


def test_a_program_that_cannot_start_leaves_no_session(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("#!/no/such/interpreter\n")
    (tmp_path / "bad").chmod(0o755)
    assert asked(tmp_path, "launch", "--light", "-o", "x", "./bad").returncode == 127
    assert not (tmp_path / "x.warplens").exists()
    assert list((tmp_path / "run").iterdir()) == []


def test_in_the_background_of_a_shell(tmp_path: Path) -> None:
    script = f'{shlex.join(map(str, COMMAND))} launch -o x sh -c "cat; exit 5" < /dev/null & wait $!; echo $?'
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=sessions_environment(tmp_path),
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert result.stdout == "5\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_sessions_of_others_are_not_seen(launch: Callable[..., Launched], tmp_path: Path) -> None:
    launch("launch", "--light", "-o", "x", "--session-new", "mine")
    code = """
        import os
        from warplens.cli.commands.sessions import command
        command(["-f", "json"], standalone_mode=False)
        os.setgroups([]); os.setgid(12345); os.setuid(12345)
        command(["-f", "json"], standalone_mode=False)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    result = subprocess.run(
        command, env=sessions_environment(tmp_path), text=True, capture_output=True, timeout=60
    )
    assert result.stdout.startswith('[\n  {\n    "session": "mine"')
    assert result.stdout.endswith("]\n[]\n")
    assert result.stderr == ""


def test_sessions_work_without_dependencies(launch: Callable[..., Launched], tmp_path: Path) -> None:
    def bare(*words: str) -> str:
        result = asked(tmp_path, *words, command=BARE)
        assert result.returncode == 0, result.stderr
        return result.stdout

    program = launch("launch", "--light", "-o", "x", "--session-new", "mine", command=BARE)
    assert bare("sessions", "list").startswith("mine (process ")
    assert bare("start").startswith("mine: recording for ")
    program.does("one")
    assert bare("stop", "--session=mine").startswith("mine: window 1 closed")
    program.does("two")
    bare("start", "--session", "mine")
    program.does("three")
    assert "not recording" in bare("stop", "--keep", "30") + bare("status")
    assert asked(tmp_path, "stop", "--what", "1", command=BARE).returncode == 2
    assert asked(tmp_path, "stop", "--keep", "long", command=BARE).returncode == 2
    assert bare("shutdown", "--kill", "none").startswith("mine: it is over; x.warplens")
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one", "three"]


@pytest.mark.parametrize("words", few(["start", "stop", "status", "sessions", "shutdown"]))
def test_the_commands_load_nothing_heavy(words: str, tmp_path: Path) -> None:
    code = f"""
        import sys
        from warplens.cli.group import run
        run([{words!r}])
        heavy = {{"numpy", "pyarrow", "duckdb", "rich", "pandas", "subprocess", "asyncio", "tempfile"}}
        sys.exit(", ".join(heavy & set(sys.modules)) or 0)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=sessions_environment(tmp_path),
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert "ession" in result.stderr
    assert result.returncode == 0, result.stderr


def test_the_last_seconds_are_saved_by_a_signal(launch: Callable[..., Launched], tmp_path: Path) -> None:
    program = launch("profile", "--light", "-o", "x", "--keep-last", "30")
    program.does("one")
    os.kill(program.process.pid, signal.SIGUSR2)
    assert program.process.stderr is not None
    assert "saved the last 30 s into" in program.process.stderr.readline()
    assert so_far(tmp_path / "x.warplens") == ["one"]
    program.does("two")
    assert "window" in done(tmp_path, "stop", "--keep", "20")
    program.does("three")
    assert state(tmp_path)["phase"] == "recording"
    assert program.ends()[0] == 7
    assert ranges(tmp_path / "x.warplens") == ["one", "two", "three"]
    assert [closed_by for _, closed_by in causes(tmp_path / "x.warplens")] == ["keep", "keep", "end"]


def test_the_signal_reaches_programs_without_flight_recorder(tmp_path: Path) -> None:
    script = "trap 'echo got it; exit 4' USR2; echo $$ > ready; while :; do sleep 0.02; done"
    process = subprocess.Popen(
        [*COMMAND, "profile", "--light", "-q", "-o", "x", "sh", "-c", script],
        cwd=tmp_path,
        env=sessions_environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    until(
        lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text(), "the program to be ready"
    )
    process.send_signal(signal.SIGUSR2)
    assert process.communicate(timeout=60)[0] == "got it\n"
    assert process.returncode == 4
