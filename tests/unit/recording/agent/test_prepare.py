"""Telling NVTX of the agent: what is set, what it costs, what is put back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment
from warplens.recording.agent.announce import (
    AGENT,
    CHAIN,
    CUDA_CHAIN,
    CUDA_INJECTION,
    INJECTION,
    ITT,
    ONEDNN,
    SPOOL,
    TOOLS,
    Announcement,
    announce,
)
from warplens.recording.agent.prepare import loaded_libraries

MAPS = """\
55d0-55d1 r--p 00000000 fe:00 1 /usr/bin/python3.11
55d1-55d2 r-xp 00001000 fe:00 1                          /usr/bin/python3.11
7f00-7f01 r-xp 00000000 fe:00 2                          /opt/my libs/lib with spaces.so
7f01-7f02 rw-p 00000000 fe:00 3                          /data/table.bin
7f02-7f03 r-xp 00000000 fe:00 4                          /opt/gone.so (deleted)
7f03-7f04 r-xp 00000000 fe:00 2                          /opt/my libs/lib with spaces.so
7f05-7f06 r-xp 00000000 00:00 0                          [vdso]
7f07-7f08 rwxp 00000000 00:00 0
"""


def test_the_libraries_of_a_process_are_its_executable_maps(tmp_path: Path) -> None:
    (tmp_path / "maps").write_text(MAPS)
    assert loaded_libraries(str(tmp_path / "maps")) == (
        "/usr/bin/python3.11",
        "/opt/my libs/lib with spaces.so",
        "/opt/gone.so",
    )
    assert loaded_libraries(str(tmp_path / "none")) == ()


@pytest.mark.parametrize(
    ("source", "injection", "chain"), [("nvtx", INJECTION, CHAIN), ("cuda", CUDA_INJECTION, CUDA_CHAIN)]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {INJECTION: "agent"}),
        ({CHAIN: "left over"}, {INJECTION: "agent"}),
        ({INJECTION: "tool"}, {INJECTION: "agent", CHAIN: "tool"}),
        ({INJECTION: "agent", CHAIN: "tool"}, {INJECTION: "agent", CHAIN: "tool"}),
    ],
)
def test_another_tool_is_chained(
    before: dict[str, str], after: dict[str, str], source: str, injection: str, chain: str
) -> None:
    names = {INJECTION: injection, CHAIN: chain}
    environment = {names[name]: value for name, value in before.items()}
    announce(environment, "agent", (source,))
    itt = {ITT: "agent", ONEDNN: "1"} if source == "nvtx" else {}
    assert environment == {names[name]: value for name, value in after.items()} | itt


def test_another_collector_of_itt_keeps_its_place() -> None:
    environment = {ITT: "collector"}
    announce(environment, "agent")
    assert environment[ITT] == "collector"
    assert ONEDNN not in environment


def test_an_announcement_is_withdrawn_but_for_what_the_program_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*TOOLS, SPOOL):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(INJECTION, "tool")
    first = Announcement("agent", "spool")
    assert [os.environ.get(name) for name in (INJECTION, CHAIN, SPOOL)] == ["agent", "tool", "spool"]
    first.withdraw()
    assert [os.environ.get(name) for name in (INJECTION, CHAIN, SPOOL)] == ["tool", None, None]
    second = Announcement("agent", "spool")
    os.environ[SPOOL] = "mine"
    second.withdraw(keep=TOOLS)
    assert [os.environ.get(name) for name in (INJECTION, CHAIN, SPOOL)] == ["agent", "tool", "mine"]
    for name in (CHAIN, CUDA_INJECTION, ITT, ONEDNN, SPOOL):
        os.environ.pop(name)


def _prepared(**variables: str) -> tuple[set[str], dict[str, str]]:
    text = """
import sys, os, __future__
before = set(sys.modules)
import warplens
assert isinstance(warplens.prepare(), tuple)
loaded = sorted(set(sys.modules) - before)
import json, os
print(json.dumps([loaded, {name: os.environ[name] for name in os.environ if "INJECTION" in name or "CHAIN" in name}]))
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", text],
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, found = json.loads(done.stdout)
    return set(loaded), found


@pytest.mark.require("native")
def test_prepare_imports_no_other_package() -> None:
    loaded, found = _prepared()
    assert found == {INJECTION: AGENT}
    ours = {name for name in loaded if name.partition(".")[0] == "warplens"}
    assert ours == {
        "warplens",
        "warplens._version",
        "warplens.recording",
        "warplens.recording.agent",
        "warplens.recording.agent.announce",
        "warplens.recording.agent.prepare",
    }
    assert loaded - ours <= {"importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings"}


@pytest.mark.require("native")
def test_under_a_launcher_it_changes_nothing() -> None:
    assert _prepared(WARPLENS_SPOOL="/some/where", NVTX_INJECTION64_PATH="/other/agent.so")[1] == {
        INJECTION: "/other/agent.so"
    }
