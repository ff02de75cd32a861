"""The spool writer and the agent under the sanitizers: many threads, forks, odd input."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.native_build import build_agent, build_spool_test, build_target

pytestmark = [pytest.mark.require("gcc"), pytest.mark.timeout(400)]  # an instrumented build on a busy machine

# GCC's thread sanitizer does not know atomic_thread_fence and says so; nothing here relies on one between threads.
THREADS = ("-g1", "-fsanitize=thread", "-Wno-tsan")
MEMORY = ("-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Logs live as long as the process, on purpose; the threads of its parent are none that a fork child could join.
WITHOUT_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_thread_leaks=0"}

RUNS = [
    (THREADS, "nvtx_storm", ["8", "20000"]),
    (THREADS, "nvtx_storm", ["8", "5000", "names"]),
    (THREADS, "nvtx_storm", ["300", "1"]),
    (THREADS, "nvtx_odd", ["together", "200"]),
    (MEMORY, "nvtx_core", []),
    (MEMORY, "nvtx_storm", ["4", "5000", "deep"]),
    (MEMORY, "nvtx_fork", ["fork"]),
    (MEMORY, "nvtx_fork", ["exec"]),
    (MEMORY, "nvtx_odd", ["names"]),
    (MEMORY, "nvtx_extensions", []),
    (THREADS, "nvtx_extensions", []),
    (THREADS, "nvtx_life", ["storm", "60"]),
    (THREADS, "nvtx_life", ["storm", "60", "200"]),
    (THREADS, "nvtx_life", ["join", "early"]),
    (MEMORY, "nvtx_life", ["storm", "100"]),
]
BY_HAND = [("busy", 12), ("restart", 3), ("fork", 2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where agents and programs are built, once each."""
    return tmp_path_factory.mktemp("sanitized")


def run(words: tuple[str, ...], name: str, arguments: list[str], folder: Path, **environment: str) -> None:
    """Run a target with the agent, both built once with these words; the sanitizer must have nothing to say."""
    kind = "threads" if words is THREADS else "memory"
    agent, program = folder / f"agent-{kind}.so", folder / f"{name}-{kind}"
    if not agent.exists():
        build_agent(agent, words=words, folder=folder / kind)
    if not program.exists():
        build_target(name, program, words=words)
    environment = WITHOUT_LEAKS | {"NVTX_INJECTION64_PATH": str(agent)} | environment
    done = subprocess.run([program, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False)
    assert "Sanitizer" not in done.stderr, done.stderr[:4000]
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["spool_test", "payload_test"])
def test_the_spool_writer(name: str, folder: Path, tmp_path: Path) -> None:
    program = build_spool_test(folder / name, words=MEMORY, name=name, folder=folder / "memory")
    done = subprocess.run([program], cwd=tmp_path, env=os.environ | WITHOUT_LEAKS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" 0 failed\n")


@pytest.mark.parametrize(("words", "name", "arguments"), RUNS, ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_the_agent(words: tuple[str, ...], name: str, arguments: list[str], folder: Path, tmp_path: Path) -> None:
    run(words, name, arguments, folder, WARPLINE_SPOOL=str(tmp_path))
    assert list(tmp_path.glob("*.spool"))


@pytest.mark.parametrize("words", [THREADS, MEMORY], ids=["threads", "memory"])
@pytest.mark.parametrize(("mode", "count"), BY_HAND)
def test_recordings_begun_by_hand(words: tuple[str, ...], mode: str, count: int, folder: Path, tmp_path: Path) -> None:
    into = [tmp_path / str(number) for number in range(count)]
    for path in into:
        path.mkdir()
    run(words, "nvtx_life", [mode, *map(str, into)], folder)
    assert all(list(path.glob("*.spool")) for path in into)


@pytest.mark.parametrize("words", [THREADS, MEMORY], ids=["threads", "memory"])
def test_another_tool(words: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    tool = build_target("nvtx_tool", tmp_path / "tool.so", words=(*words, "-shared", "-fPIC", "-fvisibility=hidden"))
    environment = {"WARPLINE_NVTX_CHAIN": str(tool), "NVTX_TOOL_LOG": str(tmp_path / "log"), "WARPLINE_SPOOL": str(tmp_path)}
    for name, arguments in (("nvtx_core", []), ("nvtx_storm", ["4", "500"]), ("nvtx_fork", ["fork"])):
        run(words, name, arguments, folder, **environment)
    assert (tmp_path / "log").read_text()
