"""Whole trees of processes in reports: who there was, where it came from, how it ended, and why it has nothing to show."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import COMMAND, SRC, codes, environment, info, program, until, warplens
from warplens.handover import pending

pytestmark = pytest.mark.require("native")

Rows = list[dict[str, Any]]


def processes(report: Path) -> Rows:
    found: Rows = info(report)["processes"]
    return found


def named(rows: Rows, name: str) -> dict[str, Any]:
    (row,) = (row for row in rows if row["name"] == name and row["ended"] != "exec")
    return row


def ancestors(rows: Rows, row: dict[str, Any]) -> list[str]:
    by_key = {one["process"]: one for one in rows}
    found = []
    while row["parent"] is not None:
        row = by_key[row["parent"]]
        found.append(row["name"])
    return found


def test_a_shell_and_what_it_runs(tmp_path: Path) -> None:
    inner = program(tmp_path / "inner.py", "sys.exit(3)")
    script = f"ls / >/dev/null; ({inner}; exit 4); env -i sleep 0; exec sh -c 'kill -9 $$'"
    result = warplens("profile", "-o", "x", "sh", "-c", script, cwd=tmp_path)
    assert result.returncode == 137, result.stderr
    rows = processes(tmp_path / "x.warplens")
    inner_row, listing, sleep = named(rows, "inner.py"), named(rows, "ls"), named(rows, "sleep")
    assert (inner_row["recorded"], inner_row["exit_status"], inner_row["ended"]) == (True, 3, "exit")
    assert (listing["recorded"], listing["exit_status"], listing["not_recorded"]) == (
        False,
        0,
        "made no NVTX or CUDA call",
    )
    assert (sleep["began"], sleep["exit_status"]) == ("exec", 0)  # env became it, and handed no variable on
    assert ancestors(rows, inner_row)[-1] == "sh"
    (primary,) = (row for row in rows if row["primary"])
    assert (primary["exit_status"], primary["ended"], primary["began"]) == (137, "signal", "exec")
    assert 4 in [row["exit_status"] for row in rows if row["began"] == "fork"]
    text = warplens("info", "x", cwd=tmp_path).stdout
    assert "killed by SIGKILL" in text
    assert "inner.py" in text


def test_hundreds_of_silent_children(tmp_path: Path) -> None:
    text = "import os\nfor _ in range(300):\n    os.spawnv(os.P_WAIT, '/bin/true', ['true'])\n"
    result = warplens("profile", "-o", "x", program(tmp_path / "many.py", text), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1 process, " in result.stderr
    assert "301 other processes recorded nothing" in " ".join(result.stderr.split())
    rows = processes(tmp_path / "x.warplens")
    true = [row for row in rows if row["name"] == "true"]
    assert len(true) == 300
    assert {(row["exit_status"], row["ended"], row["recorded"]) for row in true} == {(0, "exit", False)}
    listed = warplens("info", "x", cwd=tmp_path).stdout
    assert "… 299 more like it" in listed
    assert len(listed.splitlines()) < 60
    exported = warplens("export", "x", "-t", "chrome", "-o", "x.json", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "x.json").read_text().count("process_name") == 1
    assert "true" not in warplens("timeline", "x", cwd=tmp_path).stdout


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with nvtx.annotate("daemon"):
            pass
        open("began", "w").close()
        while not os.path.exists("end"):
            time.sleep(0.01)
        os._exit(7)
    os._exit(0)
os.wait()
"""


def test_a_daemon_that_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "end").touch()
    warplens("profile", "-o", "x", program(tmp_path / "daemon.py", DAEMON), cwd=tmp_path)
    rows = processes(tmp_path / "x.warplens")
    (daemon,) = (row for row in rows if row["exit_status"] == 7)
    assert (daemon["began"], daemon["ended"], daemon["recorded"]) == ("fork", "exit", True)


def test_a_daemon_that_outlives_the_recording(tmp_path: Path) -> None:
    wait = "while not os.path.exists('began'):\n    time.sleep(0.01)\n"
    command = [
        *COMMAND,
        "profile",
        "--light",
        "--wait",
        "primary",
        "-o",
        "x",
        str(program(tmp_path / "daemon.py", DAEMON + wait)),
    ]
    # no pipes: the daemon would hold them open
    nowhere = subprocess.DEVNULL
    subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        check=True,
        timeout=60,
    )
    (tmp_path / "end").touch()
    rows = processes(tmp_path / "x.warplens")
    (daemon,) = (row for row in rows if row["ended"] == "running")
    assert (daemon["began"], daemon["exit_status"], daemon["recorded"]) == ("fork", None, True)
    assert "still-running" in codes(tmp_path / "x.warplens")
    assert "still running" in warplens("info", "x", cwd=tmp_path).stdout


def test_the_launcher_is_killed_while_children_run(tmp_path: Path) -> None:
    script = program(
        tmp_path / "parent.py", "import subprocess\nsubprocess.run(['sh', '-c', 'sleep 60; true'])"
    )
    with subprocess.Popen(
        [*COMMAND, "profile", "--light", "-o", "x", str(script)],
        cwd=tmp_path,
        env=environment(),
        start_new_session=True,
    ) as launcher:
        until(
            lambda: any(
                b"sleep\x0060\0" in path.read_bytes()
                for path in tmp_path.glob("x.warplens/spool/*/processes.log")
            ),
            "the child",
        )
        launcher.kill()
        launcher.wait()
        os.killpg(launcher.pid, signal.SIGKILL)
    until(lambda: not pending.running(tmp_path / "x.warplens"), "the end of all")
    rows = processes(tmp_path / "x.warplens")
    assert (named(rows, "parent.py")["recorded"], named(rows, "sleep")["recorded"]) == (True, False)
    assert named(rows, "sleep")["exit_status"] is None  # nobody was told
    assert ancestors(rows, named(rows, "sleep"))[:2] == ["sh", "parent.py"]


@pytest.mark.require("gcc")
def test_programs_that_cannot_be_followed(tmp_path: Path) -> None:
    (tmp_path / "s.c").write_text("int main(void) { return 5; }\n")
    subprocess.run(["gcc", "-static", "s.c", "-o", "fixed"], cwd=tmp_path, check=True)
    alone = warplens("profile", "-o", "alone", "./fixed", cwd=tmp_path)
    assert alone.returncode == 5
    assert "cannot be followed, because it is linked statically" in alone.stderr
    (row,) = processes(tmp_path / "alone.warplens")
    assert (row["primary"], row["exit_status"], row["not_recorded"], row["name"]) == (
        True,
        5,
        "static",
        "fixed",
    )
    below = warplens("profile", "-o", "below", "sh", "-c", "./fixed; ls >/dev/null", cwd=tmp_path)
    assert below.returncode == 0, below.stderr
    rows = processes(tmp_path / "below.warplens")
    assert (named(rows, "fixed")["exit_status"], named(rows, "fixed")["not_recorded"]) == (5, "static")
    assert named(rows, "ls")["not_recorded"] == "made no NVTX or CUDA call"
    assert "not recorded: static" in warplens("info", "below", cwd=tmp_path).stdout


def test_warplens_in_a_directory_that_ld_preload_cannot_name(tmp_path: Path) -> None:
    shutil.copytree(
        SRC / "warplens", tmp_path / "a b:c" / "warplens", ignore=shutil.ignore_patterns("__pycache__")
    )
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    begin = f"import sys; sys.path.insert(0, {str(tmp_path / 'a b:c')!r}); from warplens.cli.main import main; main()"
    env = {**environment(XDG_RUNTIME_DIR=str(runtime)), "PYTHONPATH": ""}
    command = [
        sys.executable,
        "-c",
        begin,
        "profile",
        "--light",
        "-o",
        "x",
        "sh",
        "-c",
        "ls / >/dev/null; true",
    ]
    result = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert "ERROR: ld.so" not in result.stderr
    assert named(processes(tmp_path / "x.warplens"), "ls")["exit_status"] == 0
    assert not [path for path in runtime.iterdir() if path.name != "warplens"]  # the link is gone


def test_the_users_own_preload_stays_first(tmp_path: Path) -> None:
    text = "print(os.environ['LD_PRELOAD'])"
    result = warplens(
        "profile",
        "-q",
        "-o",
        "x",
        "-e",
        "LD_PRELOAD=libm.so.6",
        program(tmp_path / "p.py", text),
        cwd=tmp_path,
    )
    assert result.stdout.strip().split(":")[0] == "libm.so.6", result.stderr
    assert result.stdout.strip().endswith("libwarplens_preload.so")


def test_no_variable_of_the_program_is_in_the_report(tmp_path: Path) -> None:
    text = "import subprocess\nsubprocess.run(['true'])"
    env = environment(A_SECRET="correct horse battery staple")
    warplens(
        "profile", "-q", "--keep-raw", "-o", "x", program(tmp_path / "p.py", text), cwd=tmp_path, env=env
    )
    for path in (tmp_path / "x.warplens").rglob("*"):
        assert not path.is_file() or b"battery staple" not in path.read_bytes(), path
    (raw,) = (tmp_path / "x.warplens" / "raw").rglob("processes.log")
    assert raw.stat().st_mode & 0o777 == 0o600


def test_the_deleted_spool_of_a_tree(tmp_path: Path) -> None:
    text = """
import subprocess
subprocess.run(["ls", "/"], stdout=subprocess.DEVNULL)
import shutil
shutil.rmtree(os.environ["WARPLENS_SPOOL"])
while not os.path.exists(os.environ["WARPLENS_SPOOL"] + "/processes.log"):
    time.sleep(0.01)
subprocess.run(["sleep", "0"])
"""
    result = warplens("profile", "-o", "x", program(tmp_path / "p.py", text), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = processes(tmp_path / "x.warplens")
    assert [named(rows, name)["exit_status"] for name in ("ls", "sleep", "p.py")] == [0, 0, 0]
