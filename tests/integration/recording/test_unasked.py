"""What a run records that asks for nothing: Python's processes, and what every process had used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment
from warplens.report import Report
from warplens.report import open as open_report

PLAIN = """
import subprocess, time

def hot(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))

def main():
    kept = bytearray(64 << 20)
    hot(1.0)
    subprocess.run(["/bin/sh", "-c", "exit 0"])
    time.sleep(0.5)
    return kept

main()
"""


def _profile(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "profile", "-o", "run", *words]
    return subprocess.run(
        command, cwd=folder, env=environment(), text=True, capture_output=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.py").write_text(PLAIN)
    done = _profile(folder, sys.executable, "plain.py")
    assert done.returncode == 0, done.stderr
    return done.stderr, folder / "run.warplens"


def _opened(path: Path) -> Report:
    return open_report(path)


def test_a_plain_program_has_its_stacks_in_the_report(plain: tuple[str, Path]) -> None:
    with _opened(plain[1]) as report:
        seen = report.sql("SELECT f.function, sum(s.count) AS n FROM samples s JOIN frames f ON s.stack = f.frame WHERE s.kind = 'python' "
                          "GROUP BY ALL").to_pylist()  # fmt: skip
        assert {row["function"] for row in seen} >= {"hot", "main"}
        assert report.tables["imports"]


def test_memory_and_time_of_each_process_are_known(plain: tuple[str, Path]) -> None:
    with _opened(plain[1]) as report:
        rows = {row["name"]: row for row in report.table("processes").to_pylist()}
        python, shell = rows["plain.py"], rows["sh"]
        assert 64 << 20 < python["max_rss"] < 256 << 20
        assert 1e9 < python["user_time"] + python["system_time"] < 10e9
        assert shell["max_rss"] < 32 << 20  # of the shell, not of the Python that it was
        assert shell["recorded"] is False
        memory = report.sql("SELECT max(value) AS most FROM host_metrics WHERE metric = 'RSS'").to_pylist()[
            0
        ]["most"]
        assert 64 << 20 < memory < 1.02 * python["max_rss"]  # the kernel counts pages in batches
        assert report.manifests[0].usage["user_ns"] >= python["user_time"] // 2


def test_the_end_of_the_run_says_where_the_time_went(plain: tuple[str, Path]) -> None:
    lines = [line for line in plain[0].splitlines() if line]
    assert len(lines) <= 25
    assert all(len(line) <= 80 for line in lines), plain[0]
    assert "\x1b" not in plain[0]
    text = "\n".join(lines)
    assert re.search(r"Used +.* of CPU time: .* of \d+ CPUs?; at most \d", text)
    assert re.search(r"Time +.* of the main thread:", text)
    assert re.search(r"%  hot  plain.py", text), text
    assert re.search(r"waits \(sleep, file or lock\) +main  plain.py:13", text), text
    assert len(re.findall(r"^(?:Next)? +warplens ", text, re.MULTILINE)) == 2
    assert "Annotate" not in text


def test_a_program_that_is_not_python_has_no_agent(tmp_path: Path) -> None:
    done = _profile(tmp_path, "--keep-raw", "sh", "-c", "grep -c warplens_agent /proc/$$/maps; true")
    assert done.stdout.strip() == "0"
    with _opened(tmp_path / "run.warplens") as report:
        assert all(row["max_rss"] for row in report.table("processes").to_pylist() if row["ended"] == "exit")


def test_light_records_what_is_annotated_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import warplens.nvtx as nvtx\nwith nvtx.annotate('x'): pass\n")
    assert _profile(tmp_path, "--light", "-q", sys.executable, "plain.py").returncode == 0
    with _opened(tmp_path / "run.warplens") as report:
        assert report.tables["nvtx_ranges"] == 1
        assert not any(
            report.tables[name] for name in ("samples", "thread_states", "gc", "imports", "host_metrics")
        )


ANNOTATED = """
import queue, threading, time
from warplens import nvtx

def load(batches):
    for number in range(6):
        time.sleep(0.25)
        batches.put(number)

batches = queue.Queue()
threading.Thread(target=load, args=(batches,)).start()
for number in range(6):
    with nvtx.annotate(f"step {number}"), nvtx.annotate("wait"):
        batches.get()
"""


def test_beside_ranges_the_lines_account_for_all_of_the_main_thread(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(ANNOTATED)
    done = _profile(tmp_path, sys.executable, "plain.py")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len([line for line in lines if line]) <= 25
    (first,) = (number for number, line in enumerate(lines) if line.startswith("Time"))
    block = [lines[first]]
    for line in lines[first + 1 :]:
        if not line.startswith(" "):
            break
        block.append(line)
    assert len(block) - 1 <= 8
    assert any(re.search(r"waits for other threads +.*plain.py:14", line) for line in block), done.stderr
    shares = [
        int(match[1])
        for line in block[1:]
        if "other thread ran" not in line and (match := re.search(r"(\d+) %", line))
    ]
    assert 95 <= sum(shares) <= 105, done.stderr


KILLED = """
import os, signal, subprocess, sys
kept = bytearray(300 << 20)
subprocess.run([sys.executable, "-c", "pass"])
os.kill(os.getpid(), signal.SIGKILL)
"""


LARGE = "import subprocess, sys; kept = b'x' * (500 << 20); sys.exit(subprocess.run(sys.argv[1:]).returncode)"


@pytest.mark.parametrize(
    "starter", [(), (sys.executable, "-c", LARGE)], ids=["", "started by a large process"]
)
def test_the_memory_of_a_program_that_was_killed_is_known(tmp_path: Path, starter: tuple[str, ...]) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    words = [*starter, *map(str, COMMAND), "profile", "-o", "run", sys.executable, "killed.py"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 137
    match = re.search(r"at most (\d+) MiB of\s+memory in\s+killed.py", done.stderr)
    assert match is not None, done.stderr
    assert 300 <= int(match[1]) < 400
