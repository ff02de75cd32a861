"""cudaProfilerStart and Stop reach the agent through the stub, and the CUDA that the program uses, whichever that is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import SOURCES
from tests.support.programs.process_register import AGENT, Outcome, alone, followed, new_spool
from warplens.handover.control_layout import GATE
from warplens.recording.agent.control_file import ControlPage, Window
from warplens.recording.agent.library import CaptureSettings, load_agent

Target = Callable[..., Path]
pytestmark = [pytest.mark.require("native", "gcc")]
PROFILER_API = 2  # Trigger in native/include/warplens/format.h
LINE = ["start 0", "between 1", "stop 0", "after 0"]


@dataclass
class Bench:
    """A spool with a control file, and libraries that look like CUDA's runtime."""

    folder: Path
    spool: Path

    def runtime(self, name: str) -> Path:
        """Build a runtime `lib<name>.so.12` that calls itself `name`."""
        library = self.folder / f"lib{name}.so.12"
        if not library.exists():
            self._gcc(
                "profiler_runtime",
                library,
                "-shared",
                "-fPIC",
                f"-Wl,-soname,{library.name}",
                f'-DWHICH="{name}"',
            )
        return library

    def program(self, *words: str | Path) -> Path:
        """Build the program that starts and stops a profiler."""
        program = self.folder / "user"
        self._gcc("profiler_user", program, *words)
        return program

    def plugin(self, name: str, runtime: Path) -> Path:
        """Build a library with the program's work, linked with `runtime`."""
        library = self.folder / f"{name}.so"
        self._gcc("profiler_user", library, "-shared", "-fPIC", runtime, f"-Wl,-rpath,{self.folder}")
        return library

    def run(self, *command: str | Path, **variables: str) -> tuple[list[str], list[Window], Outcome]:
        """Run it with the stub; return its lines and the windows that it opened."""
        went = self.start(*command, NVTX_INJECTION64_PATH=str(AGENT), **variables)
        assert (went.status, went.stderr) == (0, "")
        page = ControlPage(self.spool / "control")
        windows = page.windows()
        page.close()
        return went.stdout.splitlines(), windows, went

    def start(self, *command: str | Path, **variables: Any) -> Outcome:
        """Run it with the stub."""
        return followed(
            self.folder,
            *command,
            spool=self.spool,
            CONTROL=str(self.spool / "control"),
            GATE=str(GATE),
            **variables,
        )

    def _gcc(self, source: str, out: Path, *words: str | Path) -> None:
        subprocess.run(
            [
                "gcc",
                "-O1",
                "-Wall",
                "-Werror",
                "-Wl,--no-as-needed",
                SOURCES / "cuda" / f"{source}.c",
                *words,
                "-o",
                out,
                "-ldl",
            ],
            check=True,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A spool whose windows the profiler's calls open."""
    spool = new_spool(tmp_path)
    agent = load_agent()
    agent.create_control(
        spool / "control", agent.clock_sample(), CaptureSettings(open=False, trigger=PROFILER_API)
    )
    return Bench(tmp_path, spool)


def test_a_program_that_is_linked_with_the_runtime(bench: Bench) -> None:
    program = bench.program(bench.runtime("cudart"), f"-Wl,-rpath,{bench.folder}")
    lines, [window], went = bench.run(program)
    assert lines == [*(f"cudart {line}" for line in LINE), "41 42"]
    assert (window.opened_by, window.closed_by, window.pid) == (
        "cudaProfilerApi",
        "cudaProfilerApi",
        went.pid,
    )


def test_a_runtime_that_only_a_plugin_sees(bench: Bench) -> None:
    plugin = bench.plugin("plugin", bench.runtime("cudart"))
    lines, windows, _ = bench.run(bench.program(), plugin, plugin)
    assert lines == [*(f"cudart {line}" for line in LINE), "41 42"] * 2
    assert len(windows) == 2


def test_each_plugin_gets_its_own_runtime(bench: Bench) -> None:
    plugins = [bench.plugin(f"plugin-{name}", bench.runtime(name)) for name in ("first", "second")]
    lines, windows, _ = bench.run(bench.program(), *plugins)
    # said by the program's own function the lines between would be those of either: what counts are the calls
    assert [line for line in lines if "start" in line or "stop" in line] == [
        "first start 0",
        "first stop 0",
        "second start 0",
        "second stop 0",
    ]
    assert len(windows) == 2


def test_a_program_without_cuda_that_looks_for_the_name(bench: Bench) -> None:
    """It finds ours, which says that the symbol was not found (CUDA's error 302); the window opens all the same."""
    program = bench.program()
    assert alone(bench.folder, program).stdout == "no profiler\n"
    lines, [window], _ = bench.run(program)
    assert lines == ["302 302"]
    assert window.closed_by == "cudaProfilerApi"


def test_the_agent_is_found_beside_the_stub(bench: Bench) -> None:
    """Where NVTX is not recorded, no variable names it."""
    program = bench.program()
    went = bench.start(program)
    assert went.status == 0
    page = ControlPage(bench.spool / "control")
    assert len(page.windows()) == 1
    page.close()


def test_without_a_recording_the_calls_just_pass(bench: Bench) -> None:
    program = bench.program(bench.runtime("cudart"), f"-Wl,-rpath,{bench.folder}")
    stub = bench.start(program, WARPLENS_FOLLOW="0")
    bare = alone(bench.folder, program, CONTROL=str(bench.spool / "control"), GATE=str(GATE))
    assert (stub.status, stub.stdout, stub.stderr) == (bare.status, bare.stdout, bare.stderr)
    assert bare.stdout.endswith("41 42\n")
    assert {path.name for path in bench.spool.iterdir()} == {"control", "processes.log"}
