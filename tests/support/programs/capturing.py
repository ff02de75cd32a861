"""A capture without a launcher: a control file, a program that does as it is told, and the windows opened and closed around it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.reports.spool_records import Record, read_spools
from warplens.recording.agent.control_file import ControlPage, Window
from warplens.recording.agent.library import CaptureSettings, load_agent

COMMAND = 5
CLIPPED = 0x20
CLOCK = 16  # ControlPage::clock in native/include/warplens/format.h: kind, shift, t0, base_ns, mult


class Capture:
    """A spool directory with its control file. `settings` are those of `CaptureSettings`; no window is open unless `open` says so."""

    def __init__(self, spool: Path, **settings: Any) -> None:
        self.agent = load_agent()
        self.spool = spool
        spool.mkdir(exist_ok=True)
        early = self.agent.clock_sample()
        time.sleep(0.05)
        self.agent.create_control(spool / "control", early, CaptureSettings(**{"open": False, **settings}))
        self.control = ControlPage(spool / "control")

    def hurry(self, speed: int) -> None:
        """Let the clock of all that is recorded from now on run so many times as fast. Before anything begins."""
        assert self.agent.clock_sample().kind != "monotonic", "only a counter can be made to run faster"
        now = self.agent.clock_sample()
        page = self.control.address + CLOCK
        ctypes.c_uint64.from_address(page + 8).value = now.counter
        ctypes.c_uint64.from_address(page + 16).value = now.monotonic
        ctypes.c_uint64.from_address(page + 24).value *= speed

    def open(self, cause: int = COMMAND) -> int:
        """Open a window; its number, 0 when one is open."""
        return self.agent.open_window(self.control.address, cause)

    def close(self, cause: int = COMMAND) -> int:
        """Close the open one; its number, 0 when none is."""
        return self.agent.close_window(self.control.address, cause)

    def windows(self) -> list[Window]:
        """All windows so far."""
        return self.control.windows()

    def environment(self) -> dict[str, str]:
        """What makes a program record into it."""
        return {
            **os.environ,
            "NVTX_INJECTION64_PATH": str(self.agent.path),
            "WARPLENS_SPOOL": str(self.spool),
        }

    def records(self, *kinds: str) -> list[Record]:
        """What was written, without open ranges: records of these kinds, of all processes."""
        return [
            record
            for spool in read_spools(self.spool)
            for record in spool.records
            if record.type in kinds and not record.open
        ]

    def names(self, *kinds: str) -> list[str | None]:
        """The names of those."""
        return [record.name for record in self.records(*(kinds or ("range", "start_end", "mark")))]

    def definitions(self, kind: str) -> list[Record]:
        """The definitions of one kind of object."""
        return [record for spool in read_spools(self.spool) for record in spool.definitions(kind)]

    def size(self) -> int:
        """Bytes of all spools."""
        return sum(path.stat().st_size for path in self.spool.glob("*.spool"))


class Steps:
    """A program that makes one call after the other: `tests/targets/nvtx/nvtx_steps.c`."""

    def __init__(self, program: Path, capture: Capture) -> None:
        self.process = subprocess.Popen(
            [program],
            env=capture.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __call__(self, *lines: str) -> list[int]:
        """Do these, and return what each call returned; a program that ended says nothing more."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        answers = []
        for line in lines:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            if answer:
                answers.append(int(answer))
        return answers

    def end(self) -> int:
        """Let it end; its exit status."""
        self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def steps(program: Path, capture: Capture) -> Iterator[Steps]:
    """Run the program for a while, and see that it ends well."""
    running = Steps(program, capture)
    try:
        yield running
        assert running.end() == 0
    finally:
        running.process.kill()
        running.process.wait()
