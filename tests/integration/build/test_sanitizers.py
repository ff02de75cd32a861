"""The agent under the sanitizers: many threads, forks, odd input. `make test` has what is below the agent (test_native_units.py)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import cuda_running as cuda
from tests.support.programs.capturing import Capture
from tests.support.native.fake_cuda import FakeCuda, violations
from tests.support.native.native_build import build_agent, build_target
from tests.support.native.sanitizing import MEMORY, PATIENCE_S, THREADS, WITHOUT_LEAKS
from warplens.recording.agent.library import CudaSettings

# Two instrumented builds of the agent take as long as a fifth of the other tests.
pytestmark = [pytest.mark.exhaustive, pytest.mark.require("gcc"), pytest.mark.timeout(1200)]

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
    # GCC's address sanitizer keeps its allocator's locks across a fork: a child of several threads could wait for ever.
    (MEMORY, "nvtx_life", ["storm", "100", "2000", "alone"]),
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
    done = subprocess.run(
        [program, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert "Sanitizer" not in done.stderr, done.stderr[:4000]
    assert done.returncode == 0


@pytest.mark.parametrize(("words", "name", "arguments"), RUNS, ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_the_agent(words: tuple[str, ...], name: str, arguments: list[str], folder: Path, tmp_path: Path) -> None:
    run(words, name, arguments, folder, WARPLENS_SPOOL=str(tmp_path))
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
    environment = {"WARPLENS_NVTX_CHAIN": str(tool), "NVTX_TOOL_LOG": str(tmp_path / "log"), "WARPLENS_SPOOL": str(tmp_path)}
    for name, arguments in (("nvtx_core", []), ("nvtx_storm", ["4", "500"]), ("nvtx_fork", ["fork"])):
        run(words, name, arguments, folder, **environment)
    assert (tmp_path / "log").read_text()


@pytest.mark.parametrize("words", [THREADS, MEMORY], ids=["threads", "memory"])
def test_windows_that_ranges_open(words: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    capture = Capture(tmp_path / "spool", trigger=1, message="capture", filter=2, domains=("other",))
    run(words, "nvtx_window_storm", ["4", "3000", str(tmp_path / "log"), "capture"], folder, WARPLENS_SPOOL=str(capture.spool))
    assert len(capture.windows()) > 1
    assert capture.names()


# On the look-alike CUDA: everything, from several threads; windows that open and close; a child; contexts that go.
CUDA = (
    "malloc:4096 thread kernel:a:1000:1:300 h2d:4096:2 memset:1:64:1 event:1 graph:3:1000:1:4 sync:1 managed:4096 prefetch:0 pool module",
    "start kernel:in:1000:1:50 stop kernel:out:1000:1:50 start kernel:in:1000:1:50 thread kernel:in:1000:2:50 stop sync:1 sync:2",
    "kernel:a:1000:1:50 fork_both sleep:20 kernel:b:1000:1:50 reset kernel:c:1000:1:50 sync:1",
)


@pytest.mark.parametrize(("words", "version"), [(THREADS, "13.0"), (MEMORY, "13.4")], ids=["threads", "memory"])
def test_cuda(words: tuple[str, ...], version: str, folder: Path, tmp_path: Path) -> None:
    fake = FakeCuda(version, words)
    kind = "threads" if words is THREADS else "memory"
    agent, program = folder / f"agent-{kind}.so", folder / f"cuda_program-{version}-{kind}"
    if not agent.exists():
        build_agent(agent, words=words, folder=folder / kind)
    build_target("cuda_program", program, words=(*words, *fake.words()))
    flags = cuda.TRACE | cuda.MEMORY | cuda.UM | cuda.EVENTS
    for number, script in enumerate(CUDA):
        windows = {"open": False, "trigger": cuda.PROFILER_API} if "start" in script else {}
        settings = CudaSettings(flags=flags | (cuda.TOGGLE if windows else 0), flush_ms=1, backtrace=15)
        capture = Capture(tmp_path / str(number), cuda=settings, **{"open": True, **windows})
        variables = fake.environment(agent=agent, log=tmp_path / "log") | WITHOUT_LEAKS | {"WARPLENS_SPOOL": str(capture.spool)}
        done = subprocess.run(
            [program, *script.split()], env=os.environ | variables, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        assert "Sanitizer" not in done.stderr, done.stderr[:4000]
        assert done.returncode == 0
        assert capture.records("cuda_kernel")
    assert violations(tmp_path / "log") == []
