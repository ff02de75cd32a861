"""warplens.nvtx while windows of the capture open and close, and where domains are left out. Spools are read raw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.programs.capturing import CLIPPED, Capture
from tests.support.programs.launching import SRC
from tests.support.reports.spool_records import Record

pytestmark = [pytest.mark.require("native")]

# turn() lets the test do something in between.
_TURN = """
import asyncio, sys
from warplens import nvtx
def turn():
    print("turn", flush=True)
    sys.stdin.readline()
"""


def play(capture: Capture, program: str, *turns: Callable[[], object]) -> None:
    """Run a program; at each of its turns do the next thing."""
    environment = {**capture.environment(), "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", _TURN + program]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for do in turns:
            assert process.stdout.readline() == "turn\n"
            do()
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.communicate(timeout=60)[0] == ""
        assert process.returncode == 0


def tasks_of(capture: Capture) -> dict[str | None, int]:
    """By name: the task that each push/pop range and mark was written in."""
    found, task = {}, 0
    for record in capture.records("range", "mark", "task_switch"):
        if record.type == "task_switch":
            task = record["id"]
        else:
            found[record.name] = task
    return found


def origin_of(capture: Capture, name: str) -> Record:
    """The record that explains the start/end range of this name."""
    records = capture.records("start_end", "origin")
    return next(
        after for before, after in pairwise(records) if before.name == name and after.type == "origin"
    )


def test_a_window_over_python_ranges(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "spool")
    program = """
d = nvtx.Domain("mine")
c = d.get_counter("level", int)
with nvtx.annotate("outer"), d.annotate("mine", payload={"a": 1}):
    with nvtx.annotate("before"): pass
    c.sample(1); nvtx.mark("early")
    turn()
    with nvtx.annotate("within", payload=[1.0, 2.0]): pass
    c.sample(2); nvtx.mark("mark")
    turn()
with nvtx.annotate("behind"): pass
"""
    play(capture, program, capture.open, capture.close)
    found = {record.name: bool(record["flags"] & CLIPPED) for record in capture.records("range")}
    assert found == {"within": False, "outer": True, "mine": True}
    assert capture.names("mark") == ["mark"]
    assert [record.number for record in capture.records("sample")] == [2]


def test_tasks_that_switched_while_closed_are_right_when_it_opens(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "spool")
    program = """
async def work(name, event, after):
    with nvtx.annotate(f"task {name}"):
        await event.wait()
        nvtx.mark(f"mark {name}")
        after()
async def main():
    one, two = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(work("one", one, lambda: None)), asyncio.create_task(work("two", two, turn))]
    await asyncio.sleep(0)
    nvtx.mark("main, closed")
    turn()
    one.set(); await asyncio.sleep(0); await asyncio.sleep(0)
    two.set(); await asyncio.gather(*tasks)
    for _ in range(1000):
        await asyncio.gather(closed(), closed())
async def closed():
    nvtx.mark("closed")
    await asyncio.sleep(0)
    nvtx.mark("closed")
asyncio.run(main())
nvtx.mark("closed")
turn()
nvtx.mark("no task")
"""
    play(capture, program, capture.open, capture.close, capture.open)
    tasks = tasks_of(capture)
    assert tasks["mark one"] == origin_of(capture, "task one")["task"] != 0
    assert tasks["mark two"] == origin_of(capture, "task two")["task"] != tasks["mark one"]
    assert tasks["no task"] == 0
    assert set(tasks) == {"mark one", "mark two", "no task"}
    assert len(capture.records("task_switch")) <= 8


def test_a_python_range_opens_the_window(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture", domain="mine")
    program = """
async def main():
    with nvtx.annotate("capture"), nvtx.annotate("before"): pass
    with nvtx.annotate("capture", domain="mine"):
        with nvtx.annotate("awaiting"):
            await asyncio.sleep(0)
    with nvtx.annotate("between"): pass
asyncio.run(main())
with nvtx.annotate("capture", domain="mine", color="red"):
    nvtx.mark("second")
nvtx.mark("late")
"""
    play(capture, program)
    assert sorted(map(str, capture.names())) == ["awaiting", "capture", "capture", "second"]
    assert [(window.opened_by, window.closed_by) for window in capture.windows()] == [("nvtx", "nvtx")] * 2
    assert not any(record["flags"] & CLIPPED for record in capture.records("range", "start_end"))


def test_domains_that_are_left_out_of_python(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "spool", open=True, filter=2, domains=("quiet",))
    program = """
quiet = nvtx.Domain("quiet")
counter = quiet.get_counter("level", int)
async def child():
    with nvtx.annotate("child"):
        await asyncio.sleep(0)
async def main():
    with nvtx.annotate("outer"):
        with quiet.annotate("hidden", payload={"a": 1}):
            with nvtx.annotate("inner"):
                await asyncio.sleep(0)
            await asyncio.create_task(child())
with nvtx.annotate("program"), nvtx.annotate("hidden", domain="quiet"):
    nvtx.mark("hidden", domain="quiet"); counter.sample(1); nvtx.mark("mark")
    nvtx.end_range(nvtx.start_range("hidden", domain="quiet"))
    asyncio.run(main())
"""
    play(capture, program)
    assert sorted(map(str, capture.names())) == ["child", "inner", "mark", "outer", "program"]
    assert not capture.records("sample")
    outer = next(record for record in capture.records("start_end") if record.name == "outer")
    assert origin_of(capture, "outer")["task"] != 0
    assert origin_of(capture, "inner")["task"] == origin_of(capture, "outer")["task"]
    assert outer["flags"] & CLIPPED == 0
    made = [record.json["parent"] for record in capture.definitions("task")]
    assert made == [0, origin_of(capture, "outer")["id"]]  # not the one that is hidden
