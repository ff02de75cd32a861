"""Programs with all sources of the CPU side on, in small containers: they and their output are as without us, the report is whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Target
from tests.support.programs.launching import COMMAND, environment, info
from tests.support.programs.memory_cgroup import memory_cgroup
from tests.support.thorough import alike

pytestmark = pytest.mark.require("native", "memory-cgroup", "nvtx")

MIB = 1 << 20
ALL = (
    *(
        "-t",
        "nvtx,osrt,gc,gil,import,python,python-events",
        "--sample",
        "process-tree",
        "--cpuctxsw",
        "process-tree",
    ),
    *("--python-sampling", "true", "-q"),
)
CALLS = 60_000  # of each of three threads
PROGRAM = f"""
import gc, os, sys, threading
from warplens import nvtx

def work(number, out):
    with nvtx.annotate(f"step {{number % 40}}"):
        os.write(out, b"x")
        return sum(range(number % 50))

def loop():
    with open("/dev/null", "wb", buffering=0) as out:
        for number in range({CALLS}):
            work(number, out.fileno())

threads = [threading.Thread(target=loop) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
print("done", flush=True)
sys.exit(7)
"""


def counts(report: Path) -> dict[str, int]:
    """What does not depend on the moment: how often the program did what it does."""
    tables: dict[str, int] = info(report)["tables"]
    return {name: tables[name] for name in ("nvtx_ranges", "nvtx_marks", "processes", "threads")}


@pytest.mark.parametrize("size", alike((128, 256, 512), 128))
def test_a_python_program_with_all_sources(tmp_path: Path, size: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [*map(str, COMMAND), "profile", "--light", *ALL, "-o", "x", sys.executable, str(program)]
    with memory_cgroup(size * MIB) as group:
        done = subprocess.run(
            group.wrap(*words),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        killed = group.kills
    assert (done.returncode, done.stdout, killed) == (7, "done\n", 0), done.stderr
    report = tmp_path / "x.warplens"
    assert "not finished" not in done.stderr
    assert counts(report)["nvtx_ranges"] == 3 * CALLS
    tables = info(report)["tables"]
    assert (
        min(
            tables[name]
            for name in ("osrt", "thread_states", "gil", "gc", "samples", "frames", "python_calls")
        )
        > 0
    )


def test_millions_of_ranges_in_128_megabytes(tmp_path: Path, target: Target) -> None:
    storm = target("nvtx_storm")
    words = [*COMMAND, "profile", "--light", "-q", "-o", "x", "sh", "-c", f"{storm} 2 1500000; exit 7"]
    with memory_cgroup(128 * MIB) as group:
        done = subprocess.run(
            group.wrap(*words),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        killed = group.kills
    assert (done.returncode, done.stdout, done.stderr, killed) == (7, "done\n", "", 0)
    assert counts(tmp_path / "x.warplens")["nvtx_ranges"] == 3_000_002


@pytest.mark.parametrize(("command", "size"), [("stats", 256), ("analyze", 512)])
def test_questions_about_millions_of_ranges(tmp_path: Path, target: Target, command: str, size: int) -> None:
    storm = target("nvtx_storm")
    made = [*map(str, COMMAND), "profile", "--light", "-q", "-o", "x", str(storm), "2", "1500000"]
    subprocess.run(made, cwd=tmp_path, env=environment(), check=True, timeout=300)
    words = [*map(str, COMMAND), command, "x.warplens"]
    plain = _asked(words, tmp_path)
    with memory_cgroup(size * MIB) as group:
        assert _asked(group.wrap(*words), tmp_path) == plain
        assert group.kills == 0


def _asked(words: list[Any], folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_the_limit_of_address_space_counts_too(tmp_path: Path) -> None:
    code = (
        "import json, resource; from warplens.storage import available; before = available.budget(); "
        "mapped = available._mapped(); resource.setrlimit(resource.RLIMIT_AS, (mapped + (100 << 20), -1)); "
        "print(json.dumps([before, available.budget()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    before, after = json.loads(done.stdout)
    assert before == 128 * MIB
    assert 45 * MIB < after <= 50 * MIB
