"""The spool writer and the agent under the sanitizers: many threads, forks, odd input."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.native_build import build_agent, build_spool_test, build_target

pytestmark = [pytest.mark.require("gcc"), pytest.mark.timeout(400)]  # an instrumented build on a busy machine

# GCC's thread sanitizer does not know atomic_thread_fence and says so; nothing here relies on one between threads.
THREADS = ("-g", "-fsanitize=thread", "-Wno-tsan")
MEMORY = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WITHOUT_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}  # logs live as long as the process, on purpose

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
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where agents and programs are built, once each."""
    return tmp_path_factory.mktemp("sanitized")


@pytest.mark.parametrize("name", ["spool_test", "payload_test"])
def test_the_spool_writer(name: str, folder: Path, tmp_path: Path) -> None:
    program = build_spool_test(folder / name, words=MEMORY, name=name)
    done = subprocess.run([program], cwd=tmp_path, env=os.environ | WITHOUT_LEAKS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" 0 failed\n")


@pytest.mark.parametrize(("words", "name", "arguments"), RUNS, ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_the_agent(words: tuple[str, ...], name: str, arguments: list[str], folder: Path, tmp_path: Path) -> None:
    kind = "threads" if words is THREADS else "memory"
    agent, program = folder / f"agent-{kind}.so", folder / f"{name}-{kind}"
    if not agent.exists():
        build_agent(agent, words=words)
    if not program.exists():
        build_target(name, program, words=words)
    environment = os.environ | WITHOUT_LEAKS | {"NVTX_INJECTION64_PATH": str(agent), "WARPLINE_SPOOL": str(tmp_path)}
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert "Sanitizer" not in done.stderr, done.stderr[:4000]
    assert done.returncode == 0
    assert list(tmp_path.glob("*.spool"))
