"""Who waits for data, in real programs: only a thread that then computes; never a pool's worker, nor what hands out the work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment
from tests.support.thorough import alike
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]
_WORK = """
import multiprocessing, queue, sys, threading, time
from concurrent.futures import ProcessPoolExecutor

def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))
    return seconds

def serve(tasks, results):
    while (seconds := tasks.get()) is not None:
        results.put(work(seconds))
"""
POOL = """
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        for _ in range(6):
            pool.map(work, [0.1, 0.1])
"""
EXECUTOR = """
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        for _ in range(6):
            list(pool.map(work, [0.1, 0.1]))
"""
# Like a DataLoader with two workers: {load} s for a batch, {step} s of work with it.
LOADER = """
if __name__ == "__main__":
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=serve, args=(tasks, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for _ in range(2):
        tasks.put({load})
    for _ in range(8):
        results.get()
        tasks.put({load})
        work({step})
    for _ in workers:
        tasks.put(None)
    for _ in range(2):
        results.get()
"""
# The same with a thread, which waits for its disk.
THREAD = """
import os
ready, steps = queue.Queue(1), 8
os.mkfifo("disk")
def disk():
    with open("disk", "wb", buffering=0) as out:
        for _ in range(steps):
            time.sleep({load})
            out.write(b"x")
def load():
    with open("disk", "rb", buffering=0) as source:
        for _ in range(steps):
            ready.put(source.read(1))
threading.Thread(target=disk).start()
threading.Thread(target=load).start()
for _ in range(steps):
    ready.get()
    work({step})
"""
IDLE = {
    "pool": POOL,
    "executor": EXECUTOR,
    "fast loader": LOADER.format(load=0.02, step=0.15),
}
SLOW = {
    "slow loader": LOADER.format(load=0.3, step=0.06),
    "slow thread": THREAD.format(load=0.12, step=0.03),
}


def found(folder: Path, text: str) -> list[Finding]:
    (folder / "program.py").write_text(_WORK + text, encoding="utf-8")
    options = ("-t", "osrt", "--sample=process-tree", "--python-sampling=true")
    command = [
        *COMMAND,
        "profile",
        "--light",
        "-q",
        "-o",
        "run",
        *options,
        "--",
        sys.executable,
        "program.py",
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with open_report(folder / "run.warplens") as report:
        judgement = judge(report, Selection(), ["data_loader"])
    assert not judgement.not_judged
    return list(judgement.findings)


@pytest.mark.parametrize("name", alike(IDLE, "pool", "fast loader"))
def test_pools_and_idle_workers_wait_for_work(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, IDLE[name]) == []


@pytest.mark.parametrize("name", SLOW)
def test_the_program_waits_for_its_loader(tmp_path: Path, name: str) -> None:
    (finding,) = found(tmp_path, SLOW[name])
    assert finding.title.startswith("The main thread of program.py (process ")
    assert finding.severity == "high"
    assert finding.occurrences >= 5
