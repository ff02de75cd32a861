"""What becomes of a recording that its own program makes when that program ends badly, forks, or goes on for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import environment, info, until, warplens
from tests.support.thorough import THOROUGH
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native")


def start(folder: Path, text: str, **options: Any) -> subprocess.Popen[str]:
    """Start a program; its folder is that of the reports."""
    text = "import os, sys, time\nimport warplens\nfrom warplens import nvtx\n" + textwrap.dedent(text)
    if (
        not (folder / "p.py").exists() or (folder / "p.py").read_text() != text
    ):  # another one may be reading it just now
        (folder / "p.py").write_text(text)
    pipes: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "cwd": folder,
        "env": environment(),
    }
    return subprocess.Popen([sys.executable, "p.py"], **{**pipes, **options})


MANY = 20 if THOROUGH else 6


def run(folder: Path, text: str, code: int = 0, said: str = "") -> str:
    """Run a program that must end with `code` and say `said`; return what it printed."""
    program = start(folder, text)
    out, err = program.communicate(timeout=200)
    assert (program.returncode, err) == (code, said)
    return out


def names(report: Path) -> list[tuple[str, bool]]:
    """The ranges of a report, and whether they were open at the end; opening it finishes it."""
    with open_report(report) as opened:
        found = opened.sql("SELECT message, unfinished FROM nvtx_ranges ORDER BY id").to_pylist()
    return [(row["message"], row["unfinished"]) for row in found]


BLOCK = """
with warplens.record("x"):
    with nvtx.annotate("closed"): pass
    nvtx.push_range("open")
    {}
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os.kill(os.getpid(), 9)", -9),
        ("os.kill(os.getpid(), 11)", -11),
        ("os._exit(3)", 3),
        ("sys.exit(4)", 4),
        ("os.execv('/bin/true', ['true'])", 0),
        ("pass", 0),
    ],
    ids=["kill", "crash", "_exit", "exit", "exec", "normal"],
)
def test_however_the_program_ends_its_report_is_there(end: str, code: int, tmp_path: Path) -> None:
    run(tmp_path, BLOCK.format(end), code)
    report = tmp_path / "x.warplens"
    pending = list(report.glob("pending.d/*.json"))
    assert bool(pending) == (end not in ("sys.exit(4)", "pass"))  # else the child had finished it
    assert names(report) == [("closed", False), ("open", True)]
    assert sorted(path.name for path in report.iterdir()) == ["manifest.d", "tables"]


def test_an_error_in_the_block_is_the_programs_own(tmp_path: Path) -> None:
    text = """
    try:
        with warplens.record("x"), nvtx.annotate("x"):
            raise KeyError("mine")
    except KeyError as error:
        print(error)
    assert "WARPLENS_SPOOL" not in os.environ
    """
    assert run(tmp_path, text) == "'mine'\n"
    assert names(tmp_path / "x.warplens") == [("x", False)]


def test_the_end_of_the_program_stops_what_was_started(tmp_path: Path) -> None:
    run(tmp_path, "warplens.start('x')\nwith nvtx.annotate('x'): pass")
    assert not list((tmp_path / "x.warplens").glob("pending.d/*"))  # the program waited for the child
    assert names(tmp_path / "x.warplens") == [("x", False)]


def test_while_it_records_the_report_belongs_to_the_program(tmp_path: Path) -> None:
    text = """
    with warplens.record("x"):
        with nvtx.annotate("x"): pass
        print("ready", flush=True)
        sys.stdin.readline()
    """
    program = start(tmp_path, text, stdin=subprocess.PIPE)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    early = warplens("info", "x", cwd=tmp_path)
    assert early.returncode == 1
    assert f"process {program.pid} is still recording" in early.stderr
    refused = warplens("profile", "-f", "-o", "x", "true", cwd=tmp_path)
    assert "still being written" in refused.stderr
    program.communicate("\n", timeout=60)
    assert names(tmp_path / "x.warplens") == [("x", False)]


def test_a_killed_program_whose_children_live_is_finished_when_they_have_ended(tmp_path: Path) -> None:
    text = """
    with warplens.record("x"):
        with nvtx.annotate("parent"): pass
        if (child := os.fork()) == 0:
            with nvtx.annotate("child"):
                while not os.path.exists("go"): time.sleep(0.01)
            os._exit(0)
        print(child, flush=True)
        time.sleep(60)
    """
    program = start(tmp_path, text)
    assert program.stdout is not None
    child = int(program.stdout.readline())
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert f"process {child} is still recording" in warplens("info", "x", cwd=tmp_path).stderr
    (tmp_path / "go").touch()
    until(lambda: warplens("info", "x", cwd=tmp_path).returncode == 0, "the child to end")
    assert sorted(name for name, _ in names(tmp_path / "x.warplens")) == ["child", "parent"]
    program.communicate()


def test_a_child_that_outlives_the_block_is_told(tmp_path: Path) -> None:
    text = """
    with warplens.record("x", wait=True) as recording:
        child = os.fork()
        if child == 0:
            nvtx.mark("child")
            open("marked", "w").close()
            while not os.path.exists("go"): time.sleep(0.01)
            nvtx.mark("too late")
            os._exit(0)
        while not os.path.exists("marked"): time.sleep(0.01)
    open("go", "w").close()
    assert os.waitpid(child, 0)[1] == 0 and recording.wait()
    """
    program = start(tmp_path, text)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert err.count("\n") == 1
    assert "Still running when the recording ended: python" in err
    with open_report(tmp_path / "x.warplens") as report:
        assert report.table("nvtx_marks").to_pydict()["message"] == ["child"]


def test_a_fork_child_leaves_the_recording_of_its_parent_alone(tmp_path: Path) -> None:
    """Both leave the block; the child then goes on, and ends in an orderly way."""
    text = """
    with warplens.record("x"):
        child = os.fork()
        with nvtx.annotate("child" if child == 0 else "parent"): pass
        if child: os.waitpid(child, 0)
    with nvtx.annotate("outside"): pass
    assert "WARPLENS_SPOOL" not in os.environ
    """
    run(tmp_path, text)
    assert sorted(names(tmp_path / "x.warplens")) == [("child", False), ("parent", False)]


def test_a_fork_child_records_itself(tmp_path: Path) -> None:
    """Before, while and after its parent does: while, it is part of that report."""
    text = """
    def fork(name):
        child = os.fork()
        if child == 0:
            with warplens.record(name), nvtx.annotate(name): pass
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
    fork("before")
    with warplens.record("parent", wait=True):
        fork("while")
    fork("after")
    """
    program = start(tmp_path, text)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert err.count("\n") == err.count("recorded already") == 1
    assert sorted(path.stem for path in tmp_path.glob("*.warplens")) == ["after", "before", "parent"]
    for name in ("after", "before"):
        assert names(tmp_path / f"{name}.warplens") == [(name, False)]
    assert names(tmp_path / "parent.warplens") == [("while", False)]


def test_a_fork_child_that_outlives_its_parents_recording_can_make_its_own(tmp_path: Path) -> None:
    text = """
    with warplens.record("parent") as recording:
        child = os.fork()
        if child == 0:
            nvtx.mark("in parent")
            open("marked", "w").close()
            while not os.path.exists("go"): time.sleep(0.01)
        else:
            while not os.path.exists("marked"): time.sleep(0.01)
    if child:
        recording.wait()
        open("go", "w").close()
        assert os.waitpid(child, 0)[1] == 0
    else:
        with warplens.record("child"), nvtx.annotate("of child"): pass
    """
    program = start(tmp_path, text)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert names(tmp_path / "child.warplens") == [("of child", False)]
    assert names(tmp_path / "parent.warplens") == []


def test_many_recordings_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    text = """
    import threading
    def state():
        spools = open("/proc/self/maps").read().count("x.warplens")
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task")), spools, len(os.listdir())
    def record():
        with warplens.record("x", wait=True, force=True):
            for _ in range(100):
                with nvtx.annotate("x"): pass
    for number in range(MANY):
        record()
        print(*state())
    """
    states = run(tmp_path, text.replace("MANY", str(MANY))).splitlines()
    assert len(states) == MANY
    assert set(states[2:]) == {states[2]}
    assert len(names(tmp_path / "x.warplens")) == 100
    assert sorted(path.name for path in (tmp_path / "x.warplens").iterdir()) == ["manifest.d", "tables"]


def test_many_recordings_that_nobody_waits_for(tmp_path: Path) -> None:
    text = """
    for number in range(MANY):
        with warplens.record(), nvtx.annotate("x"): pass
    print(len(os.listdir("/proc/self/task")))
    """
    assert run(tmp_path, text.replace("MANY", str(MANY))) == "1\n"
    for number in range(1, MANY + 1):
        assert names(tmp_path / f"report{number}.warplens") == [("x", False)]
        assert not (tmp_path / f"report{number}.warplens" / "pending.d").exists()


def test_no_thread_of_ours_is_there_at_a_fork_nor_seen_by_profilers(tmp_path: Path) -> None:
    """Python 3.12 warns programs that fork while they have threads; profilers of threads would trace ours."""
    text = """
    import threading
    from pathlib import Path
    threads, seen = [], set()
    os.register_at_fork(before=lambda: threads.append(len(os.listdir("/proc/self/task"))))
    threading.setprofile(lambda frame, event, argument: seen.add(threading.get_ident()))
    with warplens.record("x"):
        (log,) = Path("x.warplens/spool").glob("*/clocks.jsonl")
        for number in range(20):
            child = os.fork()
            with nvtx.annotate("child" if child == 0 else "parent"): pass
            if child == 0: os._exit(len(os.listdir("/proc/self/task")) - 1)
            assert os.waitpid(child, 0)[1] == 0
        assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 2
        lines = log.read_text().count("\\n")
        end = time.monotonic() + 20
        while log.read_text().count("\\n") == lines and time.monotonic() < end: time.sleep(0.05)
        assert log.read_text().count("\\n") > lines  # it goes on
    print(set(threads), seen)
    """
    assert run(tmp_path, text) == "{1} set()\n"
    assert sorted(names(tmp_path / "x.warplens")) == [("child", False)] * 20 + [("parent", False)] * 20


def test_a_program_that_closes_all_files_is_recorded_on(tmp_path: Path) -> None:
    text = """
    with warplens.record("x"):
        with nvtx.annotate("before"): pass
        time.sleep(0.6)
        os.closerange(3, 256)
        mine = [open("p.py") for _ in range(40)]
        with nvtx.annotate("after"): pass
    for file in mine:
        assert file.read(1) == "i"
    """
    run(tmp_path, text)
    assert names(tmp_path / "x.warplens") == [("before", False), ("after", False)]


def test_a_deleted_report_is_made_again(tmp_path: Path) -> None:
    text = """
    import shutil
    with warplens.record("x", wait=True) as recording:
        with nvtx.annotate("x"): pass
        time.sleep(0.6)
        shutil.rmtree("x.warplens")
        time.sleep(0.6)
    assert recording.wait()
    """
    program = start(tmp_path, text)
    _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert names(tmp_path / "x.warplens") == [("x", False)]
    told = {row["code"] for row in info(tmp_path / "x.warplens")["diagnostics"]}
    assert told - {"clock-corrected"} == {
        "spool-deleted"
    }  # the former where the machine's clock was set meanwhile


def test_ranks_of_a_job_share_a_report_also_when_each_records_twice(tmp_path: Path) -> None:
    text = "for number in range(2):\n    with warplens.record('job'), nvtx.annotate(f'{os.environ[\"SLURM_PROCID\"]}.{number}'): pass"
    ranks = [
        start(tmp_path, text, env=environment(SLURM_JOB_ID="7", SLURM_STEP_ID="0", SLURM_PROCID=str(rank)))
        for rank in range(3)
    ]
    for rank in ranks:
        _, err = rank.communicate(timeout=60)
        assert (rank.returncode, err) == (0, "")
    facts = info(tmp_path / "job.warplens")
    assert len(facts["parts"]) == 6
    assert sorted(name for name, _ in names(tmp_path / "job.warplens")) == [
        "0.0",
        "0.1",
        "1.0",
        "1.1",
        "2.0",
        "2.1",
    ]
    assert sorted(row["rank"] for row in facts["processes"]) == [0, 0, 1, 1, 2, 2]
