"""One recording of a program that we start: the program with the agent in it, from its start to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpline.capture.agent import Agent, ClockSample
from warpline.capture.announce import CHAIN
from warpline.capture.child import Child
from warpline.capture.environment import child_environment, launch_environment
from warpline.capture.options import CaptureOptions
from warpline.capture.program import find_program
from warpline.capture.run import Run
from warpline.capture.run_facts import RunFacts
from warpline.handover.wording import COMMAND_LINE


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
    `waiting` is told the pids of descendants that outlive the program.
    """

    command: Sequence[str]
    options: CaptureOptions
    spool: Path
    agent: Agent
    early: ClockSample
    job: str | None = None
    waiting: Callable[[list[int]], None] = lambda pids: None
    facts: RunFacts = field(init=False)

    def __post_init__(self) -> None:
        self.facts = RunFacts(self.spool, self.command, self.options.trace, self.job)

    def run(self) -> Outcome:
        """Run the program to its end; NotStarted or CaptureError when it never began."""
        nvtx = "nvtx" in self.options.trace
        environment = child_environment(
            launch_environment(), agent=self.agent.path if nvtx else None, spool=self.spool, extra=self.options.environment
        )
        path = find_program(self.command[0], environment)
        run = Run(self.spool, self.agent, self.early, self.facts, COMMAND_LINE)
        child = Child()
        try:
            start_ns = run.begin()
            child.start(path, self.command, environment)
            run.watch()
            self.facts.set(pid=child.pid)
            self.facts.save()
            still_running = child.wait(self.options.wait, self.waiting)
            end_ns = child.end_ns if self.options.wait == "primary" else time.monotonic_ns()
            run.end(
                end_ns=end_ns,
                primary_end_ns=child.end_ns,
                exit_status=child.status,
                still_running=still_running,
                other_tool=environment.get(CHAIN),
            )
            if nvtx:
                self.facts.set_cost("nvtx", self.agent.pair_cost(self.spool))
            self.facts.save()
        finally:
            child.release()
            run.close()
        assert child.status is not None
        return Outcome(child.status, start_ns, end_ns, tuple(still_running))
