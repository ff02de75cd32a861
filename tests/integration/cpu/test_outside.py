"""Programs without Python, recorded from outside by default: what is there, and that nothing of ours is in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cpu.test_perf import CHAIN, holds, may_sample, stacks
from tests.support.programs.launching import COMMAND, environment
from warplens.analysis.cpu.whereabouts import whereabouts
from warplens.report import open as open_report

Target = Callable[..., Path]
pytestmark = [
    pytest.mark.require("native"),
    pytest.mark.require("gcc"),
    pytest.mark.timeout(300),
    pytest.mark.skipif(not may_sample(), reason="the kernel permits no perf events here"),
]

HOT = """
import time
def hot(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
hot(1.0)
"""
LATE = """
#include <pthread.h>
#include <unistd.h>
static void *sleeper(void *none) { for (int i = 0; i < 100; i++) usleep(10000); return none; }
int main(void) {
  pthread_t threads[2];
  usleep(1000000);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, sleeper, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}
"""
SHELL = """
for i in $(seq 40); do /bin/true; done
{program} calls
ls /proc/$$/task | wc -l
grep -c warplens_agent /proc/$$/maps
"""


def profile(folder: Path, *words: str | Path) -> tuple[subprocess.CompletedProcess[str], Any]:
    command = [*COMMAND, "profile", "-q", "-o", "x", *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, env=environment(), text=True, capture_output=True, check=False, timeout=300
    )
    assert "warning" not in done.stderr, done.stderr
    return done, open_report(folder / "x.warplens")


def time_of(report: Any, table: str, what: str) -> Counter[str]:
    """How long each process was in each state, or was sampled, ns."""
    names = {row["process"]: row["name"] for row in report.table("processes").to_pylist()}
    sums: Counter[str] = Counter()
    for row in report.table(table).to_pylist():
        if table == "samples" or row["state"] == what:
            sums[names[row["process"]]] += row["weight"] if table == "samples" else row["end"] - row["start"]
    return sums


@pytest.mark.parametrize("linked", [(), ("-static",)], ids=["", "static"])
def test_a_c_program_says_where_its_time_goes(
    target: Target, tmp_path: Path, linked: tuple[str, ...]
) -> None:
    done, report = profile(tmp_path, target("perf_work", "-O1", *linked), "calls")
    assert (done.returncode, done.stdout) == (0, "done\n")
    with report:
        found = stacks(report)
        chain = CHAIN[:1] if linked else CHAIN  # linked statically, it has no table of its unwind rules
        assert sum(holds(stack, chain) for stack in found) > 0.6 * len(found) > 30
        # What ran before the first look is missing.
        sampled = time_of(report, "samples", "")["perf_work"]
        assert 0.6e9 < sampled < 1.3e9
        assert 0.6e9 < time_of(report, "thread_states", "running")["perf_work"] < 1.3e9
        assert report.table("processes").num_rows == 1


def test_the_screen_divides_the_time_of_a_c_program(target: Target, tmp_path: Path) -> None:
    # `exec` makes the shell that program: its pid is the launched one.
    words = ["sh", "-c", f"sleep 0.5; exec {target('perf_work', '-O1')} calls"]
    _, report = profile(tmp_path, *words)
    with report:
        times = whereabouts(report)
        assert times is not None
        assert not times.python
        functions = [piece.text for piece in times.pieces if piece.kind == "function"]
        assert functions[0] == CHAIN[0]
        spent = sum(piece.ns for piece in times.pieces)
        assert 0.9 * times.whole < spent <= times.whole
        hot = times.hot
        assert hot is not None
        assert hot.ns > 0.2e9, "what ran before the first look is missing"


def test_a_shell_of_many_programs_has_them_by_name(target: Target, tmp_path: Path) -> None:
    program = target("perf_work", "-O1")
    _, report = profile(tmp_path, "sh", "-c", f"{program} calls & {program} calls & {program} calls & wait")
    with report:
        assert whereabouts(report) is None, "no thread stands for the run"


def test_threads_that_begin_later_are_recorded_and_so_is_their_waiting(tmp_path: Path) -> None:
    (tmp_path / "late.c").write_text(LATE)
    subprocess.run(["gcc", "-pthread", "-o", "late", "late.c"], cwd=tmp_path, check=True)
    _, report = profile(tmp_path, "./late")
    with report:
        assert len({row["thread"] for row in report.table("thread_states").to_pylist()}) == 3
        assert time_of(report, "thread_states", "blocked")["late"] > 2e9


def test_short_programs_of_a_shell_are_left_alone_and_nothing_is_in_it(
    target: Target, tmp_path: Path
) -> None:
    done, report = profile(tmp_path, "sh", "-c", SHELL.format(program=target("perf_work", "-O1")))
    assert done.stdout.splitlines() == ["done", "1", "0"]  # one thread, no agent
    with report:
        recorded = {row["name"] for row in report.table("processes").to_pylist() if row["recorded"]}
        assert "true" not in recorded
        assert "perf_work" in recorded
        assert any(holds(stack, CHAIN) for stack in stacks(report))


def test_a_program_that_becomes_python_is_recorded_once(target: Target, tmp_path: Path) -> None:
    (tmp_path / "hot.py").write_text(HOT)
    words = f"{target('perf_work', '-O1')} calls; exec {sys.executable} hot.py"
    done, report = profile(tmp_path, "sh", "-c", words)
    assert done.returncode == 0, done.stderr
    with report:
        sampled = report.sql(
            "SELECT p.name, s.kind, sum(s.weight) AS ns FROM samples s JOIN processes p USING (process) GROUP BY ALL"
        ).to_pylist()
        (native,) = (row["ns"] for row in sampled if (row["name"], row["kind"]) == ("hot.py", "native"))
        assert native < 1.6e9  # about one second of CPU time, not two
        assert any(row["kind"] == "python" for row in sampled)


def test_a_program_that_becomes_another_is_two(target: Target, tmp_path: Path) -> None:
    program = target("perf_work", "-O1")
    _, report = profile(tmp_path, "sh", "-c", f"{program} calls; exec {program} calls")
    with report:
        rows = [row for row in report.table("processes").to_pylist() if row["name"] == "perf_work"]
        assert len(rows) == 2
        assert all(row["recorded"] for row in rows)
        assert sum("innermost_work" in stack for stack in stacks(report)) > 60


def test_killed_and_failing_programs_keep_their_status(tmp_path: Path) -> None:
    done, report = profile(tmp_path, "sh", "-c", "sleep 0.4; kill -9 $$")
    with report:
        assert done.returncode == 137
        assert any(row["recorded"] for row in report.table("processes").to_pylist())


NODE = """
function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * i % 7; return s; }
const end = process.cpuUsage().user + 1e6;
while (process.cpuUsage().user < end) hotLoop(1e6);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js")
@pytest.mark.parametrize("named", [True, False])
def test_code_that_node_makes_has_its_names(named: bool, tmp_path: Path) -> None:
    (tmp_path / "hot.js").write_text(NODE)
    words = ["node", *(["--perf-basic-prof"] if named else []), "hot.js"]
    done, report = profile(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    with report:
        found = stacks(report)
        name = "hotLoop" if named else "[generated code]"
        assert sum(bool(stack) and name in stack[0] for stack in found) > 0.5 * len(found) > 20
        pid = report.table("processes").to_pylist()[0]["pid"]
    Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


THREADS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static void *work(void *name) { pthread_setname_np(pthread_self(), name); usleep(900000); return NULL; }
int main(void) {
  pthread_t early, late;
  pthread_create(&early, NULL, work, "early bird");
  usleep(600000);
  pthread_create(&late, NULL, work, "late worker");
  pthread_join(early, NULL);
  pthread_join(late, NULL);
}
"""
PYTHON_THREADS = """
import ctypes, threading, time
def work():
    ctypes.CDLL(None).prctl(15, b"my worker", 0, 0, 0)
    time.sleep(0.3)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_threads_have_the_names_that_the_program_gave_them(tmp_path: Path) -> None:
    (tmp_path / "threads.c").write_text(THREADS)
    subprocess.run(["gcc", "-o", tmp_path / "threads", tmp_path / "threads.c", "-lpthread"], check=True)
    _, report = profile(tmp_path, tmp_path / "threads")
    with report:
        names = {row["name"] for row in report.table("threads").to_pylist()}
        assert {"early bird", "late worker"} <= names
    (tmp_path / "threads.py").write_text(PYTHON_THREADS)
    _, report = profile(tmp_path, "-f", sys.executable, "threads.py")
    with report:
        assert "my worker" in {row["name"] for row in report.table("threads").to_pylist()}
