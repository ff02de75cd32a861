"""A tool to be heard by: a C injection library that logs what reaches it, apart from our agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Event = dict[str, Any]
Record = Callable[..., list[Event]]
Heard = Callable[..., list[Event]]

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
NVTX_VARIABLES = ("NVTX_INJECTION64_PATH", "NVTX_DISABLE", "NVTX_TOOL_LOG", "WARPLENS_SPOOL")


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without anything about NVTX, plus `extra`."""
    clean = {name: value for name, value in os.environ.items() if name not in NVTX_VARIABLES}
    return clean | {"PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "default"} | extra


def run_python(code: str, **extra: str) -> str:
    """Run `code` in a fresh interpreter and return what it printed; fails when it fails."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment(**extra), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logging tool, built."""
    target = tmp_path_factory.mktemp("tool") / "libnvtx_tool.so"
    source = ROOT / "tests" / "targets" / "nvtx" / "nvtx_tool.c"
    flags = ["-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(target), "-lpthread"], check=True)
    return target


def decode(line: str) -> Event:
    """One line of the tool's log; texts travel as hexadecimal."""
    return _texts(json.loads(line))


def _texts(event: Event) -> Event:
    for key, value in event.items():
        if isinstance(value, str) and key in ("message", "name", "domain", "description", "path", "unit"):
            event[key] = bytes.fromhex(value).decode()
        elif (isinstance(value, str) and key in ("bytes", "times")) or (
            key == "value" and event.get("event") in ("sample", "batch")
        ):
            event[key] = bytes.fromhex(value)
        elif isinstance(value, list):
            for item in value:
                _texts(item)
    return event


@pytest.fixture
def record(tool: Path, tmp_path: Path) -> Record:
    """Run code with the tool listening; returns what it heard. Names in `only` keep just those kinds of event."""

    def run(code: str, *only: str, **extra: str) -> list[Event]:
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        run_python(code, NVTX_TOOL_LOG=str(log), **{"NVTX_INJECTION64_PATH": str(tool)} | extra)
        lines = log.read_text().splitlines() if log.exists() else []
        events = [decode(line) for line in lines]
        return [event for event in events if not only or event["event"] in only]

    return run


@pytest.fixture(scope="session")
def task_tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logging tool that also takes tasks."""
    target = tmp_path_factory.mktemp("tool") / "libnvtx_task_tool.so"
    source = ROOT / "tests" / "targets" / "nvtx" / "nvtx_task_tool.c"
    flags = ["-shared", "-fPIC", "-O1", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(target), "-lpthread"], check=True)
    return target


@pytest.fixture
def heard(record: Record, task_tool: Path) -> Heard:
    """Run code with the tool listening; `nvtx`, `asyncio` and `contextlib` are imported."""

    def run(code: str, **extra: str) -> list[Event]:
        lines = code.strip("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        program = "import asyncio, contextlib\nimport warplens.nvtx as nvtx\n" + "\n".join(
            line[indent:] for line in lines
        )
        return record(program, NVTX_INJECTION64_PATH=str(task_tool), **extra)

    return run
