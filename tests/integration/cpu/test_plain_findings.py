"""Programs that nobody annotated, each with a planted mistake: what a run records unasked shows it, and its fixed twin is silent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment
from tests.support.thorough import alike
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import Judgement, judge

_CHANCES = 3  # on a busy machine a program may be starved so much that another thing is true of it
_MACHINE = ("waits_for_cpu",)  # depends on what else the machine does
HOT = """
import sys, time

def squares(seconds):
    end, total = time.process_time() + seconds, 0
    while time.process_time() < end:
        for number in range(2_000):
            total += number * number
    return total

def main():
    return squares(0.02 if "--fix" in sys.argv else 1.0)

main()
"""
PART = """
def part{number}():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        sum(range(1_000))
"""
# Five functions, none of which has much of the time; of the twin one is left.
WITH_CALLEES = f"""
import sys, time
{"".join(PART.format(number=number) for number in range(5))}
def parse():
    for part in (part0, part1, part2, part3, part4):
        part()

def main():
    if "--fix" not in sys.argv:
        parse()
    time.sleep(0.5)

main()
"""
STARVED = """
import subprocess, sys
work = "import time\\nend = time.process_time() + 0.4\\nwhile time.process_time() < end: sum(range(1_000))"
count = 1 if "--fix" in sys.argv else 8
for child in [subprocess.Popen([sys.executable, "-c", work]) for _ in range(count)]:
    child.wait()
"""
LOOPS = """
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
double loops(double seconds) {
  double sum = 0, end = now() + seconds;
  while (now() < end) {
    #pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 2000; ++i) sum += i * 0.5;
  }
  return sum;
}
"""
SPINS = """
import ctypes, os
library = ctypes.CDLL(os.path.abspath("loops.so"))
library.loops.argtypes, library.loops.restype = [ctypes.c_double], ctypes.c_double
library.loops(1.5)
"""
SLEEPS = """
import sys, threading, time
done = threading.Event()

def download():
    time.sleep(0.05)
    done.set()

def poll():
    while not done.is_set():
        time.sleep(1.0)

def main():
    threading.Thread(target=download).start()
    done.wait() if "--fix" in sys.argv else poll()
    sum(range(1_000_000))

main()
"""
LOCKED = """
import sqlite3, sys, threading, time
first = sqlite3.connect("data", check_same_thread=False, isolation_level=None)
first.execute("CREATE TABLE entries (number)")
began = threading.Event()

def report():
    first.execute("BEGIN IMMEDIATE")
    if "--fix" in sys.argv:
        first.execute("COMMIT")
    began.set()
    if "--fix" not in sys.argv:
        began.wait()
        threading.Event().wait(1.0)
        first.execute("COMMIT")

def store():
    second = sqlite3.connect("data", timeout=20, isolation_level=None)
    second.execute("INSERT INTO entries VALUES (1)")

threading.Thread(target=report).start()
began.wait()
store()
"""
# Workers of a pool, which write to one database; of the twin, one after the other.
WRITERS = """
import sqlite3, sys, threading
from concurrent.futures import ThreadPoolExecutor
sqlite3.connect("data").execute("CREATE TABLE entries (number)")
local, lock = threading.local(), threading.Lock()

def store(number):
    if not hasattr(local, "base"):
        local.base = sqlite3.connect("data", timeout=30, isolation_level=None)
        local.base.execute("PRAGMA synchronous = OFF")  # the disk is not what they wait for
    local.base.execute("BEGIN IMMEDIATE")
    local.base.executemany("INSERT INTO entries VALUES (?)", ((number,) for _ in range(2_000)))
    local.base.execute("COMMIT")

def request(number):
    if "--fix" not in sys.argv:
        return store(number)
    with lock:
        return store(number)

with ThreadPoolExecutor(8) as pool:
    list(pool.map(request, range(200)))
"""
BLOCKS = """
import asyncio, sys, time

def query():
    time.sleep(0.25)

async def beat():
    while True:
        await asyncio.sleep(0.01)

async def handler():
    if "--fix" in sys.argv:
        await asyncio.to_thread(query)
    else:
        query()

async def main():
    pulse = asyncio.create_task(beat(), name="beat")
    for number in range(4):
        await asyncio.create_task(handler(), name=f"request-{number}")
        await asyncio.sleep(0.05)
    pulse.cancel()

asyncio.run(main())
"""
LEAKS = """
import sys, time
kept = []

def handle(number):
    data = bytearray(4 << 20)
    if "--fix" not in sys.argv:
        kept.append(data)
    return sum(range(800_000))

def main():
    for number in range(56):
        handle(number)
        time.sleep(0.03)

main()
"""


@dataclass(frozen=True)
class Plain:
    """A program, the rule that must speak, its subject, a text in what it says; `environment`: of the first run, and of the twin."""

    text: str
    rule: str
    subject: str
    says: str
    environment: tuple[Mapping[str, str], Mapping[str, str]] = field(default=({}, {}))
    only: bool = False  # nothing else is to be said of it


PLAIN = {
    "hot": Plain(HOT, "hot_function", "squares (program.py)", "Its line program.py:", only=True),
    "callees": Plain(WITH_CALLEES, "hot_function", "parse (program.py)", "with the functions that it calls"),
    "starved": Plain(STARVED, "waits_for_cpu", "a free CPU", "Start fewer threads"),
    "spins": Plain(
        SPINS, "spinning", "OpenMP", "OMP_NUM_THREADS", ({"OMP_NUM_THREADS": "6"}, {"OMP_NUM_THREADS": "1"})
    ),
    "sleeps": Plain(SLEEPS, "sleeping", "poll (program.py) sleeps", "Wait for the result itself"),
    "locked": Plain(LOCKED, "sleeping", "store (program.py) waits for a database", "WAL"),
    "writers": Plain(WRITERS, "sleeping", "store (program.py) waits for a database", "8 threads stood still"),
    "blocks": Plain(
        BLOCKS,
        "event_loop_blocked",
        "handler (program.py)",
        "in query (program.py). 1 other task had to wait: beat.",
    ),
    "leaks": Plain(LEAKS, "memory_growth", "the memory of program.py", "most of it in handle (program.py)"),
}
pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]


def judged(folder: Path, name: str, *words: str) -> Judgement:
    """Record the program as anybody would, and ask all rules."""
    plain = PLAIN[name]
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(plain.text, encoding="utf-8")
    if name == "spins":
        (folder / "loops.c").write_text(LOOPS, encoding="utf-8")
        subprocess.run(
            ["gcc", "-O1", "-fopenmp", "-shared", "-fPIC", "-o", "loops.so", "loops.c"],
            cwd=folder,
            check=True,
            timeout=120,
        )
    extra = plain.environment[1 if words else 0]
    command = [*COMMAND, "profile", "-q", "-o", "run", "--", sys.executable, "program.py", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with open_report(folder / "run.warplens") as report:
        return judge(report, Selection())


def texts(finding: Finding) -> str:
    rows = " ".join(row.text for row in finding.evidence)
    return " ".join((finding.title, finding.cause, finding.fix, rows))


def wrong(folder: Path, name: str) -> str:
    """Record both twins and ask; returns what is wrong, empty if nothing is."""
    plain = PLAIN[name]
    slow = judged(folder / "slow", name)
    if plain.rule in slow.not_judged:
        pytest.skip(f"not judged here: {slow.not_judged[plain.rule]}")
    planted = [finding for finding in slow.findings if finding.rule == plain.rule]
    if [finding.subject.replace("<module>", "") for finding in planted] != [plain.subject]:
        return f"{name}: {[(finding.rule, finding.subject) for finding in slow.findings]}"
    if plain.says not in texts(planted[0]):
        return f"{name}: {texts(planted[0])}"
    assert planted[0].bound is None or 0 < planted[0].bound <= slow.span
    others = [finding for finding in slow.findings if finding.rule not in (plain.rule, *_MACHINE)]
    if plain.only and others:
        return f"{name}: {[finding.title for finding in others]}"
    fast = judged(folder / "fast", name, "--fix")
    left = [finding for finding in fast.findings if finding.rule == plain.rule]
    if plain.rule in _MACHINE:  # others may use the machine, which is said
        left = [finding for finding in left if plain.says in texts(finding)]
    assert plain.rule in fast.silent or left or plain.rule in _MACHINE
    return f"{name}, fixed: {[texts(finding) for finding in left]}" if left else ""


@pytest.mark.parametrize("name", alike(PLAIN, "hot", "sleeps", "blocks", "leaks"))
def test_the_mistake_is_named_and_its_twin_is_silent(name: str, tmp_path: Path) -> None:
    reasons = []
    for chance in range(_CHANCES):
        reasons.append(wrong(tmp_path / str(chance), name))
        if not reasons[-1]:
            return
    pytest.fail("\n".join(reasons))
