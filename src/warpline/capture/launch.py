"""One recording: the control page, the program with the agent in it, and the facts of the run in `launch.json`."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpline.capture import facts
from warpline.capture.agent import Agent, ClockSample
from warpline.capture.child import Child
from warpline.capture.control import ControlPage
from warpline.capture.environment import CHAIN, child_environment, launch_environment
from warpline.capture.keeper import SpoolKeeper
from warpline.capture.monitor import Monitor
from warpline.capture.options import CaptureOptions
from warpline.capture.program import find_program
from warpline.errors import CaptureError

CLOCK_SPAN_NS = 10_000_000
FACTS_ROOM = 16384  # launch.json is padded to it, so that its end can be written even when the disk has become full
_OTHER_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run went: the exit status to return, and the pids of descendants that still run."""

    exit_status: int
    start_ns: int
    end_ns: int
    still_running: tuple[int, ...]


@dataclass(slots=True)
class Recording:
    """Runs `command` so that the agent records it into the existing directory `spool`.

    `early` is a clock sample taken as early as possible: the longer ago, the better the clock's rate is known.
    `saved` is False where the facts of the run, diagnostics among them, could not be written into the spool.
    `waiting` is told the pids of descendants that outlive the program.
    """

    command: Sequence[str]
    options: CaptureOptions
    spool: Path
    agent: Agent
    early: ClockSample
    job: str | None = None
    waiting: Callable[[list[int]], None] = lambda pids: None
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    saved: bool = field(default=True, init=False)
    _facts: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Outcome:
        """Run the program to its end; NotStarted or CaptureError when it never began."""
        environment = child_environment(
            launch_environment(),
            agent=self.agent.path if "nvtx" in self.options.trace else None,
            spool=self.spool,
            extra=self.options.environment,
        )
        path = find_program(self.command[0], environment)
        if "nvtx" in self.options.trace and (tool := environment.get(CHAIN)):
            self.note(
                "warning",
                "nvtx-tool",
                f"NVTX_INJECTION64_PATH named another NVTX tool, {tool}. NVTX speaks to one tool, so that one got nothing.",
            )
        control = self._create_control()
        self._facts = {
            "command": list(self.command),
            "host": facts.host_name(),
            "boot_id": facts.boot_id(),
            "job": self.job,
            "pid": None,
            "start_ns": 0,
            "end_ns": 0,
            "primary_end_ns": 0,
            "exit_status": None,
            "sources": {name: {"on": True, "cost_ns": None} for name in self.options.trace},
            "diagnostics": self.diagnostics,
            "target": facts.target(),
        }
        child = Child()
        try:
            keeper = SpoolKeeper(self.spool, control)
            monitor = Monitor(self.spool, self.agent, keeper)
            self._facts["start_ns"] = time.monotonic_ns()
            self._save()
            child.start(path, self.command, environment)
            monitor.start(self.early)
            self._facts["pid"] = child.pid
            self._save()
            still_running = child.wait(self.options.wait, self.waiting)
            self._facts["end_ns"] = child.end_ns if self.options.wait == "primary" else time.monotonic_ns()
            self._facts["primary_end_ns"] = child.end_ns
            monitor.stop()
            self._facts["exit_status"] = child.status
            self._note_end(keeper, monitor, control, still_running)
            self._save()
        finally:
            child.release()
            control.close()
        assert child.status is not None
        return Outcome(child.status, self._facts["start_ns"], self._facts["end_ns"], tuple(still_running))

    def remove(self) -> None:
        """Remove the spool of a program that never started."""
        shutil.rmtree(self.spool, ignore_errors=True)

    def _create_control(self) -> ControlPage:
        short = CLOCK_SPAN_NS - (time.monotonic_ns() - self.early.monotonic)
        if short > 0:
            time.sleep(short / 1e9)
        path = self.spool / "control"
        try:
            self.agent.create_control(path, self.early)
            return ControlPage(path)
        except OSError as error:
            raise CaptureError(
                f"Cannot write the control page {path}: {error.strerror}.\nName another directory with --spool-dir."
            ) from error

    def _note_end(self, keeper: SpoolKeeper, monitor: Monitor, control: ControlPage, still_running: list[int]) -> None:
        self._note_spool(keeper)
        counts = control.counts()
        if counts.failed:
            reason = os.strerror(counts.error) if counts.error else "unknown reason"
            hint = " Name another directory with --spool-dir." if counts.error in _OTHER_PLACE else ""
            self.note(
                "error",
                "agent-failed",
                f"{counts.failed} {'process' if counts.failed == 1 else 'processes'} could not record, because no spool could be opened: "
                f"{reason}. {counts.lost:,} calls of NVTX were lost.{hint}",
                counts.lost,
            )
        if "nvtx" in self.options.trace:
            if counts.processes == 0 and counts.failed == 0:
                self.note(
                    "warning",
                    "no-nvtx",
                    "No process of the program called NVTX, so there is nothing to show. "
                    "Annotate it with warpline.nvtx, or any other NVTX library.",
                )
            self._facts["sources"]["nvtx"]["cost_ns"] = self.agent.pair_cost(self.spool)
        if still_running:
            names = ", ".join(f"{facts.process_name(pid)} ({pid})" for pid in still_running[:5]) + (", …" if len(still_running) > 5 else "")
            self.note(
                "warning",
                "still-running",
                f"Still running when the recording ended: {names}. What they do from then on is not recorded.",
                len(still_running),
            )
        if monitor.missed_lines:
            self.note(
                "warning", "clock-lines", "Some readings of the clocks could not be written to the spool directory.", monitor.missed_lines
            )

    def _note_spool(self, keeper: SpoolKeeper) -> None:
        rescued = keeper.rescue()
        if rescued or keeper.deleted:
            self.note(
                "warning",
                "spool-deleted",
                f"The spool directory {self.spool} was deleted while the program ran. "
                f"{rescued} spool files were rescued; processes that began and ended around then may be missing.",
                rescued,
            )
        if keeper.lost:
            self.note("error", "spool-lost", f"{keeper.lost} deleted spool files could not be rescued.", keeper.lost)

    def note(self, severity: str, code: str, message: str, count: int | None = None) -> None:
        """Add a row for the report's diagnostics."""
        self.diagnostics.append({"severity": severity, "code": code, "source": "launcher", "message": message, "count": count})

    def _save(self) -> None:
        path = self.spool / "launch.json"
        temporary = path.with_suffix(".tmp")
        text = json.dumps(self._facts).ljust(FACTS_ROOM)
        try:
            temporary.write_text(text, encoding="ascii")
            temporary.replace(path)
            self.saved = True
        except OSError as error:
            try:
                temporary.unlink(missing_ok=True)
            except OSError:
                pass  # the disk may have become read-only
            self.saved = _overwrite(path, text)
            if not self.saved:
                # never harms the program: the report then lacks these facts
                self.note("warning", "launch-facts", f"The facts of the run could not be written to {path}: {error.strerror}.")


def _overwrite(path: Path, text: str) -> bool:
    """Write `text` over the file's contents where it has the room: that works on a full disk."""
    try:
        with path.open("r+b") as file:
            room = os.fstat(file.fileno()).st_size
            if len(text.rstrip()) > room:
                return False
            file.write(text.rstrip().ljust(room).encode("ascii"))
    except OSError:
        return False
    return True
