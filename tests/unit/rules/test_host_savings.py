"""Programs whose host is late for a reason, and their fixed twins, on a simulated machine: what is won lies between what was stated.

At least half of the estimate, at most 1.1 of the bound; and the rule finds nothing in the twin.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.simulated_gpu import Machine
from tests.support.thorough import alike
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge
from warplens.storage.writer import Facts, write_part

pytestmark = pytest.mark.slow


US, MS = 1_000, 1_000_000
STEPS = 30
_PER_PROCESS = 1 << 32


class Host(Machine):
    """A machine whose host does more than to launch; `rows`: of the tables that show it."""

    def __init__(self) -> None:
        super().__init__()
        self.more: dict[str, list[dict[str, Any]]] = {}

    def busy(self, table: str, ns: int, **columns: Any) -> None:
        """Do something that a table shows, for so long."""
        start = self.now
        self.work(ns)
        self.seen(table, start, self.now, **columns)

    def seen(self, table: str, start: int, end: int, thread: int = 0, **columns: Any) -> None:
        """Add a row."""
        own = self.more.setdefault(table, [])
        own.append({"id": len(own), "process": 0, "thread": thread, "start": start, "end": end, **columns})

    def named(self, name: str, start: int) -> None:
        """Add an NVTX range up to now."""
        flags = {"unfinished": False, "inherited": False, "clipped": False}
        self.seen("nvtx_ranges", start, self.now, message=name, style="PushPop", depth=0, **flags)

    def told(self, path: Path) -> Path:
        """Write the report: what the GPU did and what the host did."""
        self.schedule.write(path)
        facts = Facts("host-100-2", "host", "boot", command=["run"], origin=0, end=self.schedule.end)
        for table in self.more.values():
            table.sort(key=lambda row: row["start"])
        write_part(path, facts, self.more)
        return path


Program = Callable[[Host, bool, random.Random], None]


def preprocesses(host: Host, planted: bool, rng: random.Random) -> None:
    """Prepares each batch where it could have been prepared before."""
    for _ in range(STEPS):
        ns, rest, kernel = (
            rng.randrange(3 * MS, 9 * MS),
            rng.randrange(100 * US, 2 * MS),
            rng.randrange(MS, 5 * MS),
        )
        start = host.now
        host.work(ns if planted else 0)
        host.named("preprocess", start)
        host.work(rest)
        host.launch(kernel)
        if rng.random() < 0.3:
            host.wait()
    host.wait()


def loads(host: Host, planted: bool, rng: random.Random) -> None:
    """Waits for a loader that is too slow."""
    for _ in range(STEPS):
        ns, rest, kernel = (
            rng.randrange(3 * MS, 9 * MS),
            rng.randrange(100 * US, 2 * MS),
            rng.randrange(MS, 5 * MS),
        )
        start = host.now
        host.work(ns if planted else 5 * US)
        host.named("next batch", start)
        host.work(rest)
        host.launch(kernel)
    host.wait()


def collects(host: Host, planted: bool, rng: random.Random) -> None:
    """Lets the garbage collector walk over everything every few steps."""
    for _ in range(STEPS):
        host.work(rng.randrange(100 * US, 2 * MS))
        if rng.random() < 0.3:
            pause = rng.randrange(20 * MS, 60 * MS)
            host.busy("gc", pause if planted else 100 * US, generation=2, collected=0, uncollectable=0)
        host.launch(rng.randrange(MS, 5 * MS))
    host.wait()


def contends(host: Host, planted: bool, rng: random.Random) -> None:
    """Waits for the GIL, which another thread holds in C code."""
    for _ in range(STEPS):
        ns, rest = rng.randrange(3 * MS, 30 * MS), rng.randrange(100 * US, 2 * MS)
        start = host.now
        if planted:
            host.busy("gil", ns, state="wait", held=0, waited=ns, holds=0, waits=1, interpreter=0)
            host.seen(
                "gil",
                start,
                host.now,
                thread=1,
                state="hold",
                held=ns,
                waited=0,
                holds=1,
                waits=0,
                interpreter=0,
            )
        host.work(rest)
        host.launch(rng.randrange(MS, 5 * MS))
    host.wait()
    host.seen(
        "gil", host.now, host.now + US, state="hold", held=US, waited=0, holds=1, waits=0, interpreter=0
    )


def reads(host: Host, planted: bool, rng: random.Random) -> None:
    """Reads a slow file in each step."""
    for _ in range(STEPS):
        ns = rng.randrange(3 * MS, 9 * MS)
        if planted:
            host.busy("osrt", ns, name="read", group="file", result=1, target="/data/a", bytes=100)
        host.work(rng.randrange(100 * US, 2 * MS))
        host.launch(rng.randrange(MS, 5 * MS))
    host.busy("osrt", US, name="read", group="file", result=1, target="/data/a", bytes=100)
    host.wait()


PROGRAMS: dict[str, tuple[Program, str]] = {
    "gpu_waits_for_cpu": (preprocesses, "preprocess"),
    "data_loader": (loads, "next batch"),
    "gc_pauses": (collects, "garbage"),
    "gil_contention": (contends, "thread"),
    "slow_file_reads": (reads, "read"),
}


@pytest.mark.parametrize("seed", alike(range(6), 0))
@pytest.mark.parametrize("rule", PROGRAMS)
def test_the_saving_lies_between_estimate_and_bound(tmp_path: Path, rule: str, seed: int) -> None:
    program, subject = PROGRAMS[rule]
    ends = []
    for planted in (True, False):
        host = Host()
        program(host, planted, random.Random(seed))
        ends.append(host.end)
        with open_report(host.told(tmp_path / f"{planted}.warplens")) as report:
            judgement = judge(report, Selection(), [rule])
        assert not judgement.not_judged
        found = [finding for finding in judgement.findings if subject in finding.subject]
        assert len(found) == planted
        if planted:
            (finding,) = found
    assert finding.bound is not None
    assert finding.estimate is not None
    assert 0 < finding.estimate / 2 <= ends[0] - ends[1] <= 1.1 * finding.bound, (
        finding.estimate / MS,
        finding.bound / MS,
    )
