"""What is left when something goes wrong around a recording: a killed launcher, deleted files, no space, no permission."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs.launching import (
    COMMAND,
    alive,
    codes,
    environment,
    info,
    program,
    until,
    warplens,
)
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native")

WAIT = """
open("ready", "w").write(str(os.getpid()))
end = time.monotonic() + 30
while not os.path.exists("go") and time.monotonic() < end:
    time.sleep(0.01)
for number in range(5):
    with nvtx.annotate("late"):
        pass
"""


def _start(cwd: Path, *words: str | Path, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
    launcher = subprocess.Popen(
        [*COMMAND, "profile", "--light", "-o", "x", *map(str, words)],
        cwd=cwd,
        env=environment(),
        stdout=output,
        stderr=output,
        text=True,
    )
    until(lambda: (cwd / "ready").exists() and (cwd / "ready").read_text(), "the program to be ready")
    return launcher


def test_a_killed_launcher_leaves_the_program_alone_and_the_next_command_finishes(tmp_path: Path) -> None:
    launcher = _start(tmp_path, program(tmp_path / "p.py", WAIT), output=subprocess.DEVNULL)
    child = int((tmp_path / "ready").read_text())
    launcher.kill()
    launcher.wait()
    assert alive(child)
    early = warplens("info", "x", cwd=tmp_path)
    assert early.returncode == 1
    assert f"process {child}" in early.stderr
    refused = warplens("profile", "-f", "-o", "x", "true", cwd=tmp_path)
    assert refused.returncode == 1
    assert "still being written" in refused.stderr
    (tmp_path / "go").touch()
    until(lambda: not alive(child), "the program to end")
    facts = info(tmp_path / "x.warplens")
    assert facts["tables"]["nvtx_ranges"] == 16
    assert facts["parts"][0]["exit_status"] is None
    assert not (tmp_path / "x.warplens" / "spool").exists()


def test_interrupted_finishing_is_made_up_for(tmp_path: Path) -> None:
    launcher = _start(tmp_path, program(tmp_path / "p.py", WAIT), output=subprocess.DEVNULL)
    report = tmp_path / "x.warplens"
    os.kill(launcher.pid, signal.SIGSTOP)
    (tmp_path / "go").touch()
    child = int((tmp_path / "ready").read_text())
    until(lambda: not alive(child), "the program to end")
    launcher.kill()  # before it could do anything
    launcher.wait()
    done = warplens("info", report, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert info(report)["tables"]["nvtx_ranges"] == 16


@pytest.mark.parametrize("what", ["report", "spool"])
def test_a_deleted_directory_is_rescued(what: str, tmp_path: Path) -> None:
    child = program(tmp_path / "child.py")
    text = WAIT + f"import subprocess; subprocess.run([{str(child)!r}], check=True)"
    launcher = _start(tmp_path, program(tmp_path / "p.py", text))
    report = tmp_path / "x.warplens"
    spool = next((report / "spool").iterdir())
    until(lambda: list(spool.glob("*.spool")), "the spool")
    # the launcher looks four times a second, and has the file open then
    until(
        lambda: any(
            ".spool" in str(link.readlink())
            for link in Path(f"/proc/{launcher.pid}/fd").iterdir()
            if link.is_symlink()
        ),
        "the launcher to look",
    )
    shutil.rmtree(report if what == "report" else spool)
    until(lambda: (spool / "control").exists(), "the directory to come back")
    (tmp_path / "go").touch()
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, err
    assert "was deleted while the program ran" in err
    facts = info(report)
    assert facts["tables"]["nvtx_ranges"] == 16 + 11
    assert "spool-deleted" in [row["code"] for row in facts["diagnostics"]]
    assert facts["parts"][0]["exit_status"] == 0


@pytest.mark.require("tmpfs")
def test_a_process_that_cannot_open_a_spool_is_an_error_in_the_report(
    tmp_path: Path, tmpfs: Callable[[str], Path]
) -> None:
    disk = tmpfs("size=64m,nr_inodes=30")
    child = program(tmp_path / "child.py", "print('ran')")
    text = f"""
import subprocess
import sys
import textwrap
try:
    for number in range(100):
        open({str(disk)!r} + f"/{{number}}", "x").close()
except OSError:
    pass
subprocess.run([{str(child)!r}], check=True)
for number in range(10):
    os.unlink({str(disk)!r} + f"/{{number}}")
"""
    done = warplens("profile", "-o", "x", "--spool-dir", disk, program(tmp_path / "p.py", text), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert "agent-failed" in codes(tmp_path / "x.warplens")
    assert done.stderr.strip().startswith("Error     1 process could not record"), done.stderr
    assert "(all its inodes are in use). 22 calls of NVTX were lost." in " ".join(done.stderr.split())


@pytest.mark.require("tmpfs")
def test_a_full_disk_costs_records_and_says_so(tmp_path: Path, tmpfs: Callable[[str], Path]) -> None:
    disk = tmpfs("size=4m")
    text = "[nvtx.mark('m') for _ in range(200_000)]\nprint('ran')"
    done = warplens("profile", "-o", "x", "--spool-dir", disk, program(tmp_path / "p.py", text), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    facts = info(tmp_path / "x.warplens")
    lost = sum(row["count"] for row in facts["diagnostics"] if row["code"] == "dropped-records")
    assert facts["tables"]["nvtx_marks"] + lost == 200_000
    assert lost > 0
    assert facts["parts"][0]["exit_status"] == 0
    first = done.stderr.strip().splitlines()[0]
    assert first.startswith(("Error", "Warning")), done.stderr


@pytest.mark.require("tmpfs")
def test_a_disk_that_is_full_when_the_report_is_due_leaves_the_exit_code(
    tmp_path: Path, tmpfs: Callable[[str], Path]
) -> None:
    disk = tmpfs("size=48m")
    text = f"""
nvtx.mark("m")
with open({str(disk / "filler")!r}, "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(1 << 16))
    except OSError:
        pass
"""
    done = warplens(
        "profile", "-o", disk / "x", "--spool-dir", disk, program(tmp_path / "p.py", text), cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "no space left while writing" in done.stderr
    assert "finishes it" in done.stderr
    (disk / "filler").unlink()
    facts = info(disk / "x.warplens")
    assert (facts["tables"]["nvtx_marks"], facts["parts"][0]["exit_status"]) == (1, 0)


def _changed(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Record in a launcher in which `text` has changed something."""
    code = (
        textwrap.dedent(text)
        + "\nfrom warplens.cli.main import main\nmain(['profile', '-o', 'x', 'sh', '-c', 'exit 3'])"
    )
    words = [sys.executable, "-c", code]
    return subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)


def test_a_mistake_of_the_launcher_is_not_the_programs(tmp_path: Path) -> None:
    text = """
        from warplens.recording.run import Run
        def mistaken(*arguments, **named):
            raise RuntimeError("odd")
        Run.end = mistaken
    """
    done = _changed(tmp_path, text)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    assert "The launcher could not note all it knows: RuntimeError: odd." in " ".join(done.stderr.split())


def test_a_killed_conversion_leaves_the_exit_code_and_says_what_to_do(tmp_path: Path) -> None:
    text = """
        import os, signal
        from warplens.convert import finish
        finish.Builder.build = lambda builder: os.kill(os.getpid(), signal.SIGKILL)
    """
    done = _changed(tmp_path, text)
    assert done.returncode == 3, done.stderr
    lines = [line for line in done.stderr.splitlines() if "is not finished" in line]
    assert len(lines) == 1
    assert "ended (SIGKILL, which the system sends if memory is short)" in lines[0]
    assert "All is in x.warplens/spool/" in lines[0]
    assert lines[0].endswith("`warplens info x.warplens` finishes it.")
    assert info(tmp_path / "x.warplens")["parts"][0]["exit_status"] == 3


def test_a_killed_summary_leaves_the_exit_code_and_the_report(tmp_path: Path) -> None:
    text = """
        import os, signal
        from warplens.cli import finishing
        finishing.summed_up = lambda report, manifest: os.kill(os.getpid(), signal.SIGKILL)
    """
    done = _changed(tmp_path, text)
    assert done.returncode == 3, done.stderr
    assert "x.warplens is finished, but the process that sums it up ended (SIGKILL" in done.stderr
    assert not (tmp_path / "x.warplens" / "pending.d").exists()


def test_ctrl_c_while_the_report_is_written_leaves_it_for_later(tmp_path: Path) -> None:
    text = """
        import os, signal, time
        from warplens.convert import finish
        def build(builder):
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(60)
        finish.Builder.build = build
    """
    done = _changed(tmp_path, text)
    assert done.returncode == 130
    assert "Nothing is lost: `warplens info x.warplens` finishes the report." in done.stderr
    assert not list((tmp_path / "x.warplens").rglob("*.tmp*"))
    assert info(tmp_path / "x.warplens")["parts"][0]["exit_status"] == 3


def test_an_interruption_before_the_report_is_begun_says_what_to_do(tmp_path: Path) -> None:
    text = """
        import os, signal
        from warplens.recording.launch.launcher import Recording
        release = Recording.release
        def interrupted(made):
            release(made)
            os.kill(os.getpid(), signal.SIGINT)
        Recording.release = interrupted
    """
    done = _changed(tmp_path, text)
    assert done.returncode == 130
    assert "Nothing is lost: `warplens info x.warplens` finishes the report." in done.stderr
    assert info(tmp_path / "x.warplens")["parts"][0]["exit_status"] == 3


@pytest.mark.require("tmpfs")
def test_a_read_only_place_for_the_report_is_said_before_the_program_runs(
    tmp_path: Path, tmpfs: Callable[[str], Path]
) -> None:
    disk = tmpfs("ro,size=1m")
    done = warplens("profile", "-o", disk / "x", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr
    assert not (tmp_path / "ran").exists()
    done = warplens("profile", "-o", "y", "--spool-dir", disk, "true", cwd=tmp_path)
    assert done.returncode == 1
    assert "it is read-only" in done.stderr


def test_a_range_that_a_killed_child_had_open_lasts_until_it_was_last_seen(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "from warplens import nvtx\nnvtx.push_range('open')\nprint(flush=True)\ninput()\n"
    )
    text = """
import subprocess
import sys
import textwrap
clocks = os.path.join(os.environ["WARPLENS_SPOOL"], "clocks.jsonl")
lines = lambda: open(clocks).read().count("\\n")
with subprocess.Popen([sys.executable, "child.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    child.stdout.readline()
    with nvtx.annotate("meanwhile"):
        before = lines()
        while lines() < before + 2:  # the launcher looks several times a line
            time.sleep(0.01)
    child.kill()
"""
    done = warplens("profile", "-q", "-o", "x", program(tmp_path / "p.py", text), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    with open_report(tmp_path / "x.warplens") as report:
        (meanwhile,) = report.sql("SELECT start FROM nvtx_ranges WHERE message = 'meanwhile'").to_pylist()
        (ended,) = report.sql(
            "SELECT \"end\" FROM nvtx_ranges WHERE message = 'open' AND unfinished"
        ).to_pylist()
    assert ended["end"] > meanwhile["start"]
