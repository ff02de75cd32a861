"""Another NVTX tool, configured before us, hears everything, and so do we: two packages, several libraries, a fork."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Target
from tests.support.optional_dependencies import LIB
from tests.support.reports.raw_spool import RawSpool, read_all
from tests.support.thorough import few

pytestmark = pytest.mark.require("gcc")
AGENT = LIB / "libwarplens_agent.so"
SRC = LIB.parent.parent
PROGRAM = """
import os, sys, threading
import {package} as nvtx
domain = nvtx.get_domain("first")
with nvtx.annotate("outer", color="red", domain="second", category="named", payload=7):
    nvtx.mark("mark", domain="first")
    running = nvtx.start_range("start/end", domain="third")
    nvtx.push_range("pushed"); nvtx.pop_range()
    worker = threading.Thread(target=nvtx.end_range, args=(running,))
    worker.start(); worker.join()
prepared = domain.get_event_attributes(message="prepared", category="other")
for i in range(1000):
    domain.push_range(prepared); domain.pop_range()
left = nvtx.start_range("left running")
counter = nvtx.get_domain("first").get_counter("counter", "int64")
counter.sample(5)
child = os.fork()
if child == 0:
    with nvtx.annotate("in the child", domain="second"): pass
    nvtx.end_range(left)
    os._exit(0)
os.waitpid(child, 0)
"""
RANGES = ["pushed", "outer", *["prepared"] * 1000]


def heard(log: Path) -> list[dict[str, Any]]:
    """What the other tool was told; texts travel as hexadecimal."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    for event in events:
        for key in ("message", "name", "domain"):
            if isinstance(event.get(key), str):
                event[key] = bytes.fromhex(event[key]).decode()
    return events


def run(command: Iterable[str | Path], folder: Path, tool: Path | str) -> list[RawSpool]:
    """Run with the agent and the other tool; returns what the agent wrote. The tool's log is `log` in `folder`."""
    spool = folder / "spool"
    spool.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WARPLENS_")}
    environment |= {
        "NVTX_INJECTION64_PATH": str(AGENT),
        "WARPLENS_NVTX_CHAIN": str(tool),
        "WARPLENS_SPOOL": str(spool),
    }
    environment |= {"NVTX_TOOL_LOG": str(folder / "log"), "PYTHONPATH": str(SRC)}
    done = subprocess.run(
        list(command), env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return read_all(spool)


@pytest.fixture
def tool(target: Target) -> Path:
    """The other tool."""
    return target("nvtx_tool", "-shared", "-fPIC", "-fvisibility=hidden")


def named(events: list[dict[str, Any]], kind: str) -> list[str | None]:
    return [event["message"] for event in events if event["event"] == kind]


@pytest.mark.parametrize(
    "package", [pytest.param("nvtx", marks=pytest.mark.require("nvtx")), "warplens.nvtx"]
)
def test_both_hear_everything(package: str, tmp_path: Path, tool: Path) -> None:
    parent, child = run([sys.executable, "-c", PROGRAM.format(package=package)], tmp_path, tool)
    events = heard(tmp_path / "log")
    here = [event for event in events if event["tid"] != child.process["pid"]]
    there = [event for event in events if event["tid"] == child.process["pid"]]
    assert sorted(filter(None, named(here, "push"))) == sorted(RANGES)
    assert len(named(here, "push")) == len([event for event in here if event["event"] == "pop"])
    assert (named(here, "mark"), named(here, "start")) == (["mark"], ["start/end", "left running"])
    ids = [event["id"] for event in here if event["event"] == "start"]
    assert [event["id"] for event in here if event["event"] == "end"] == ids[:1]
    assert [event["id"] for event in there if event["event"] == "end"] == ids[1:]
    assert [event["value"] for event in here if event["event"] == "sample_int64"] == [5]
    assert named(there, "push") == ["in the child"]

    assert parent.names("range") == RANGES
    assert (parent.names("mark"), parent.names("start_end"), child.names("start_end")) == (
        ["mark"],
        ["start/end"],
        ["left running"],
    )
    domains = {record.fields["domain"]: record.name for record in parent.records if record.kind == "domain"}
    assert set(domains.values()) == {"first", "second", "third"}
    placed = {
        record.name: domains.get(record.fields["domain"])
        for record in parent.records
        if record.kind in ("range", "mark", "start_end")
    }
    assert placed == {
        "pushed": None,
        "outer": "second",
        "prepared": "first",
        "mark": "first",
        "start/end": "third",
    }
    outer = next(record for record in parent.records if record.name == "outer")
    assert (outer.fields["payload"], outer.fields["flags"] & 7, outer.fields["color"]) == (7, 2, 0xFF0000)
    assert [record.fields["payload"] for record in parent.records if record.kind == "sample"] == [5]
    assert child.names("range") == ["in the child"]
    assert not parent.dropped
    assert not child.dropped


def test_every_call_of_c(tmp_path: Path, target: Target, tool: Path) -> None:
    (alone,) = run([target("nvtx_core")], tmp_path, "")
    (folder := tmp_path / "chained").mkdir()
    (both,) = run([target("nvtx_core")], folder, tool)
    for kind in ("range", "mark", "start_end", "category", "thread_name", "domain"):
        assert both.names(kind) == alone.names(kind), kind
    assert [record.name for record in both.open] == [record.name for record in alone.open]
    assert heard(folder / "log")


@pytest.mark.parametrize("tool", few(["/nowhere/tool.so", sys.executable, str(AGENT)]))
def test_a_tool_that_cannot_be_loaded(tool: str, tmp_path: Path, target: Target) -> None:
    (spool,) = run([target("nvtx_fork"), "closed"], tmp_path, tool)
    assert "after close" in spool.names("range")


def test_the_report_tells_when_the_other_tool_heard_nothing(
    tmp_path: Path, target: Target, tool: Path
) -> None:
    for path, expected in (("/nowhere/tool.so", 1), (str(tool), 0)):
        out = tmp_path / f"{expected}.warplens"
        environment = os.environ | {
            "PYTHONPATH": str(SRC),
            "NVTX_INJECTION64_PATH": path,
            "NVTX_TOOL_LOG": str(tmp_path / "log"),
        }
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "warplens",
            "profile",
            "--light",
            "-q",
            "-o",
            out,
            "--spool-dir",
            tmp_path,
            target("nvtx_core"),
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        shown = subprocess.run(
            [sys.executable, "-m", "warplens", "info", out],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.stdout.count("It heard nothing of 1 library") == expected, shown.stdout + shown.stderr
    assert heard(tmp_path / "log")
