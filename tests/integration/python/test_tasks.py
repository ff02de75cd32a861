"""Tasks and generators of a recorded program, as the report shows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import warplens
from tests.support.programs.launching import COMMAND, environment

pytestmark = pytest.mark.require("native")

_PROGRAM = """
import asyncio
from warplens import nvtx

@nvtx.annotate()
def call(): pass

def numbers():
    with nvtx.annotate("numbers"):
        for n in range(2):
            call()
            yield n

async def child(turns):
    with nvtx.annotate("child", payload=turns):
        for _ in range(turns):
            await asyncio.sleep(0)
        call()
        with nvtx.annotate("inner"):
            await asyncio.sleep(0)

async def main():
    with nvtx.annotate("group"):
        await asyncio.gather(child(1), child(4), asyncio.to_thread(call))

with nvtx.annotate("program"):
    asyncio.run(main())
for _ in numbers():
    call()
"""


def test_ranges_have_their_task_and_parent_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    command = [*COMMAND, "profile", "--light", "-q", "-o", "run", "--", sys.executable, "program.py"]
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=100)
    report = warplens.open(tmp_path / "run.warplens")
    rows = report.sql(
        "SELECT r.message AS name, t.library, p.message AS parent, r.depth, r.style, count(*) AS n FROM nvtx_ranges r"
        " LEFT JOIN nvtx_ranges p ON r.parent = p.id LEFT JOIN tasks t ON r.task = t.task GROUP BY ALL ORDER BY min(r.start), 3 NULLS FIRST"
    ).to_pylist()
    found = {tuple(row.values()) for row in rows}
    assert found == {
        ("program", None, None, 0, "PushPop", 1),
        ("group", "asyncio", "program", 0, "StartEnd", 1),
        ("child", "asyncio", "group", 0, "StartEnd", 2),
        ("call", "asyncio", "child", 1, "PushPop", 2),
        ("inner", "asyncio", "child", 1, "StartEnd", 2),
        ("call", None, None, 0, "PushPop", 3),  # in the other thread, and twice beside the generator
        ("numbers", "generator", None, 0, "StartEnd", 1),
        ("call", "generator", "numbers", 0, "PushPop", 2),  # push/pop: the depth on the thread
    }
    short, long = report.sql(
        "SELECT start, \"end\" FROM nvtx_ranges WHERE message = 'child' ORDER BY payload_int"
    ).to_pylist()
    assert short["start"] < long["start"] < short["end"] < long["end"]
    assert report.sql("SELECT count(*) AS n FROM nvtx_ranges WHERE unfinished").to_pylist() == [{"n": 0}]
    tasks = report.sql(
        "SELECT t.library, r.message AS parent FROM tasks t LEFT JOIN nvtx_ranges r ON t.parent = r.id ORDER BY t.start"
    ).to_pylist()
    assert [tuple(row.values()) for row in tasks] == [
        ("asyncio", None),
        ("asyncio", "group"),
        ("asyncio", "group"),
        ("generator", None),
    ]
