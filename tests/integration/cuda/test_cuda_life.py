"""How recordings of CUDA begin and end: forks, the ways to exit, recordings that a program begins itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import SOURCES, Target
from tests.support.programs.cuda_running import (
    CLOCK,
    CONVERTED,
    PATIENCE_S,
    TOGGLE,
    TRACE,
    CudaPrograms,
    CudaRun,
)
from tests.support.programs.launching import SRC

pytestmark = [pytest.mark.require("native", "gcc")]


@pytest.fixture
def cuda(tmp_path: Path, target: Target) -> CudaPrograms:
    return CudaPrograms(tmp_path, target)


@pytest.mark.parametrize("trap", ["", "fork-hang"])
def test_a_fork_child_leaves_cupti_alone(cuda: CudaPrograms, trap: str) -> None:
    """CUDA does not work there, and a flush could hang. The parent goes on."""
    run = cuda.run(
        "kernel:first:1000:1:9 sync:1 fork_both sleep:120 kernel:second:1000:1:4 sync:1", traps=trap
    )
    parent, *children = run.spools
    assert {record.name for record in parent.of("cuda_kernel")} == {"first", "second"}
    assert len(parent.of("cuda_kernel")) == 13
    assert sum(len(child.of("cuda_kernel")) for child in children) == 0


def test_children_that_use_cuda_themselves(cuda: CudaPrograms) -> None:
    """Forked before the parent did, as by a pool of workers."""
    run = cuda.run("fork_both kernel:both:1000:1:5 sync:1")
    assert [len(spool.of("cuda_kernel")) for spool in run.spools] == [5, 5]
    assert len({spool.facts["process"]["pid"] for spool in run.spools}) == 2


@pytest.mark.parametrize("end", ["", "exit:0", "thread exit:0", "reset"])
def test_orderly_ends(cuda: CudaPrograms, end: str) -> None:
    """All that was finished is there, though nobody waited for a flush."""
    capture = cuda.capture(flush_ms=100_000)
    run = cuda.run(f"kernel:first:1000:1:50 sync:1 {end}", capture=capture)
    assert len(run.of("kernel")) == 50


def preloaded(folder: Path, stub: str = "libwarplens_preload.so") -> dict[str, str]:
    """The variable that preloads a stub, by a path without spaces: they part the paths in it."""
    link = folder / stub
    link.symlink_to(SRC / "warplens" / "_lib" / stub)
    return {"LD_PRELOAD": str(link)}


@pytest.mark.parametrize("stub", ["libwarplens_preload.so", "libwarplens_preload_cpu.so"])
@pytest.mark.parametrize("end", ["_exit:3", "quick_exit:3", "thread _exit:3"])
def test_ends_without_exit_handlers(cuda: CudaPrograms, end: str, stub: str, tmp_path: Path) -> None:
    """The stub tells the agent, which fetches what is finished. Nobody flushed before."""
    variables = preloaded(tmp_path, stub)
    run = cuda.run(
        f"kernel:first:1000:1:50 sync:1 {end}",
        capture=cuda.capture(flush_ms=100_000),
        code=3,
        variables=variables,
    )
    assert len(run.of("kernel")) == 50


def test_children_that_end_without_exit_handlers(cuda: CudaPrograms, tmp_path: Path) -> None:
    """As those of multiprocessing's fork do."""
    capture = cuda.capture(flush_ms=100_000)
    run = cuda.run(
        "fork_both kernel:both:1000:1:5 sync:1 _exit:0", capture=capture, variables=preloaded(tmp_path)
    )
    assert [len(spool.of("cuda_kernel")) for spool in run.spools] == [5, 5]


def test_a_flush_that_hangs_does_not_keep_a_process_from_leaving(cuda: CudaPrograms, tmp_path: Path) -> None:
    variables = preloaded(tmp_path)
    capture = cuda.capture(flush_ms=100_000)
    cuda.run(
        "kernel:first:1000:1:50 sync:1 _exit:3",
        traps="hang-flush=2",
        capture=capture,
        code=3,
        variables=variables,
    )


def test_the_agent_does_not_flush_while_cuda_starts(cuda: CudaPrograms) -> None:
    """Two threads in the driver's initialization could wait for each other."""
    run = cuda.run("kernel:first:1000:1:50 sync:1", traps="slow-init=700", capture=cuda.capture(flush_ms=50))
    assert len(run.of("kernel")) == 50


def killed(cuda: CudaPrograms, words: str, code: int) -> CudaRun:
    return cuda.run(f"kernel:first:1000:1:50 sync:1 sleep:300 kernel:last:1000:1:2 {words}", code=code)


@pytest.mark.parametrize(
    ("words", "code"), [("_exit:3", 3), (f"kill:{signal.SIGKILL}", -9), (f"kill:{signal.SIGABRT}", -6)]
)
def test_other_ends(cuda: CudaPrograms, words: str, code: int) -> None:
    """What was fetched before is there."""
    assert killed(cuda, words, code).names("kernel")["first"] == 50


def by_hand(
    cuda: CudaPrograms, mode: str, count: int, version: str = "13.0", inject: bool = False
) -> CudaRun:
    """Run a program that begins and ends its recordings itself."""
    captures = [cuda.capture(TRACE) for _ in range(count)]
    environment = cuda.environment(captures[0], version)
    del environment["WARPLENS_SPOOL"], environment["NVTX_INJECTION64_PATH"]
    if not inject:
        del environment["CUDA_INJECTION64_PATH"]
    agent = captures[0].agent.path
    folders = [capture.spool for capture in captures]
    command: list[str | Path] = [sys.executable, SOURCES / "cuda" / "cuda_by_hand.py", agent, mode, *folders]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    runs = [cuda.result(capture, done) for capture in captures]
    assert runs[0].broken_rules() == []
    return CudaRun(done, [spool for run in runs for spool in run.spools], runs[0].log, runs[0].truth)


@pytest.mark.parametrize("end", ["reset", "driver release:0"])
def test_records_are_fetched_before_a_context_goes(cuda: CudaPrograms, end: str) -> None:
    """What is known of its work goes with it."""
    words = f"kernel:first:1000:1:50 sync:1 {end} kill:{signal.SIGKILL}"
    run = cuda.run(words, capture=cuda.capture(flush_ms=100_000), code=-9)
    assert len(run.of("kernel")) == 50


@pytest.mark.parametrize("version", ["12.4", "13.0", "13.4"])
def test_recordings_that_a_program_begins_itself(cuda: CudaPrograms, version: str) -> None:
    """CUDA runs already: times are moved to our clock, and what exists is told of."""
    run = by_hand(cuda, "late", 3, version)
    assert [{record.name: 1 for record in spool.of("cuda_kernel")} for spool in run.spools] == [
        {f"in_{number}": 1} for number in range(3)
    ]
    assert [len(spool.of("cuda_kernel")) for spool in run.spools] == [10, 10, 10]
    assert all(
        spool.of("cuda_device") and spool.of("cuda_context") and spool.of("cuda_stream")
        for spool in run.spools
    )
    assert all(CONVERTED in {record["notice"] for record in spool.of("cuda_notice")} for spool in run.spools)
    really = sorted(event["start"] for event in run.truth if str(event.get("name")).startswith("in_"))
    seen = sorted(record["start"] for record in run.of("kernel"))
    assert all(abs(a - b) < 1_000_000 for a, b in zip(seen, really, strict=True))


@pytest.mark.parametrize("version", ["13.0", "13.4"])
def test_a_recording_that_begins_before_cuda_does(cuda: CudaPrograms, version: str) -> None:
    """The driver calls us then; later ones in the same process attach. With 13.4 each subscribes anew, and has a clock of its own."""
    run = by_hand(cuda, "early", 2, version, inject=True)
    assert [len(spool.of("cuda_kernel")) for spool in run.spools] == [10, 10]
    assert CLOCK not in run.notices()
    assert run.log.count("clock registered") == (version == "13.0")


def test_work_that_runs_when_a_recording_ends(cuda: CudaPrograms) -> None:
    """It is waited for a little while."""
    run = by_hand(cuda, "busy", 1)
    assert run.names("kernel") == {"in_0": 10, "long": 1}


def test_the_end_in_the_middle_of_a_recording(cuda: CudaPrograms) -> None:
    run = by_hand(cuda, "exit", 1)
    assert sum(len(spool.of("cuda_kernel")) for spool in run.spools) >= 10


def test_windows_that_nvtx_ranges_open(cuda: CudaPrograms) -> None:
    """The range does not begin before CUPTI collects, and CUPTI rests when it has ended."""
    capture = cuda.capture(
        TRACE | TOGGLE, flush_ms=1000, open=False, trigger=1, message="capture", any_domain=True
    )
    command: list[str | Path] = [
        sys.executable,
        SOURCES / "cuda" / "cuda_by_hand.py",
        capture.agent.path,
        "ranges",
    ]
    run = cuda.run(command, "13.4", capture=capture, variables={"PYTHONPATH": str(SRC)})
    assert run.names("kernel") == {"in_capture": 8}


def test_a_program_that_never_uses_a_gpu_is_left_alone(cuda: CudaPrograms) -> None:
    run = cuda.run("sleep:1", capture=cuda.capture(TRACE | TOGGLE))
    assert run.spools == []


def test_finished_records_are_written_soon(cuda: CudaPrograms) -> None:
    """While the program runs, though its buffers are far from full."""
    capture = cuda.capture(flush_ms=20)
    words = ["kernel:first:1000:1:10", "sync:1", "sleep:20000"]
    cuda.until(lambda run: len(run.of("kernel")) == 10, [cuda.program(), *words], capture)
