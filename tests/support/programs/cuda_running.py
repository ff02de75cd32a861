"""Programs on the look-alike CUDA with the agent in them, and what it wrote."""

from __future__ import annotations

import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.native.fake_cuda import DEFAULT, FakeCuda, log, truth
from tests.support.programs.capturing import Capture
from tests.support.reports.spool_records import RawSpool, Record, read_spools
from warplens.recording.agent.library import CudaSettings

TRACE, ALL_APIS, GRAPH_NODES, MEMORY, UM, EVENTS, TOGGLE, NO_API = 1, 2, 4, 8, 16, 128, 256, 512
# CudaNotice of cuda_records.h.
RECORDING, DRIVER, NO_CUPTI, BUSY, FAILED, STOLEN, CLOCK, CONVERTED, FLUSH_HUNG, TOO_OLD, GATED, FINALIZED = (
    range(1, 13)
)
CUPTI_DROPPED, CUPTI_INVALID, CUPTI_UNFINISHED, CUPTI_UNKNOWN, CUPTI_REPEATED = range(56, 61)
PROFILER_API = 2  # Trigger
PATIENCE_S = 100


@dataclass
class CudaRun:
    """One run: how it went, what the agent wrote, what the fake saw."""

    done: subprocess.CompletedProcess[str]
    spools: list[RawSpool]
    log: list[str]
    truth: list[dict[str, Any]]

    def of(self, kind: str) -> list[Record]:
        """Records of `cuda_<kind>`, of all processes."""
        return [record for spool in self.spools for record in spool.of(f"cuda_{kind}")]

    def names(self, kind: str) -> Counter[str | None]:
        """How often each name occurs among them."""
        return Counter(record.name for record in self.of(kind))

    def notices(self) -> dict[int, Record]:
        """The last notice of each number, without those that every run has."""
        return {
            record["notice"]: record
            for record in self.of("notice")
            if record["notice"] not in (RECORDING, DRIVER)
        }

    def dropped(self, slot: int) -> int:
        """What was counted there, in all processes."""
        return sum(spool.dropped[slot] for spool in self.spools)

    def broken_rules(self) -> list[str]:
        """What the agent did that CUPTI does not allow."""
        return [line for line in self.log if line.startswith("violation")]


class CudaPrograms:
    """`cuda_program` (or another target) on one version of the look-alike, with the agent."""

    def __init__(self, folder: Path, target: Callable[..., Path]) -> None:
        self.folder = folder
        self._target = target

    def capture(self, flags: int = TRACE, flush_ms: int = 50, **settings: Any) -> Capture:
        """A control file for the next run."""
        settings = {"open": True, **settings}
        number = len(list(self.folder.glob("spool*")))
        return Capture(
            self.folder / f"spool{number}", cuda=CudaSettings(flags=flags, flush_ms=flush_ms), **settings
        )

    def environment(
        self,
        capture: Capture,
        version: str = DEFAULT,
        traps: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """What makes a program use CUDA and be recorded."""
        fake = FakeCuda(version)
        agent = capture.agent.path
        logged = fake.environment(
            traps=traps, agent=agent, log=capture.spool / "log", truth=capture.spool / "truth"
        )
        return {
            **capture.environment(),
            **logged,
            "TRUTH": str(capture.spool / "program"),
            **(variables or {}),
        }

    def program(self, version: str = DEFAULT, name: str = "cuda_program") -> Path:
        """The program, linked against that version."""
        return self._target(name, *FakeCuda(version).words())

    def result(self, capture: Capture, done: subprocess.CompletedProcess[str]) -> CudaRun:
        """What became of a run."""
        return CudaRun(
            done, read_spools(capture.spool), log(capture.spool / "log"), truth(capture.spool / "truth")
        )

    def until(
        self,
        condition: Callable[[CudaRun], bool],
        command: Sequence[str | Path],
        capture: Capture,
        version: str = DEFAULT,
        traps: str = "",
    ) -> CudaRun:
        """Run a program until what it wrote so far is as it should be, then kill it; it must not end before."""
        running = subprocess.Popen(command, env=self.environment(capture, version, traps))
        try:
            while running.poll() is None:
                time.sleep(0.05)
                try:
                    run = self.result(capture, subprocess.CompletedProcess([], 0))
                except (AssertionError, struct.error):  # in the middle of a chunk's birth
                    continue
                if condition(run):
                    return run
            raise AssertionError("it never came to that")
        finally:
            running.kill()
            running.wait()

    def run(
        self,
        words: str | Sequence[str | Path],
        version: str = DEFAULT,
        traps: str = "",
        capture: Capture | None = None,
        code: int = 0,
        variables: Mapping[str, str] | None = None,
    ) -> CudaRun:
        """Run `cuda_program` with these words (a text), or another command; its exit code must be `code`, and no rule broken."""
        capture = capture or self.capture()
        command: list[str | Path] = (
            [self.program(version), *words.split()] if isinstance(words, str) else [*words]
        )
        done = subprocess.run(
            command,
            env=self.environment(capture, version, traps, variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert (done.returncode, done.stderr) == (code, "")
        run = self.result(capture, done)
        assert run.broken_rules() == []
        return run
