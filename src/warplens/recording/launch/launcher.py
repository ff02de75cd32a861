"""Records one program from its start to its end: starts it with the agent in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from warplens.handover.wording import COMMAND_LINE
from warplens.recording.agent.announce import CHAIN, CUDA_CHAIN
from warplens.recording.agent.cupti_search import cupti_variables
from warplens.recording.agent.library import Agent, ClockSample
from warplens.recording.agent.preload import CPU_STUB, PYTHON, STUB
from warplens.recording.finishing.converting import Converting
from warplens.recording.gpu.sampler import GpuSampler
from warplens.recording.host.sampler import HostSampler
from warplens.recording.launch.child import Child
from warplens.recording.launch.environment import child_environment, launch_environment
from warplens.recording.launch.observers import Observers
from warplens.recording.launch.program import find_program
from warplens.recording.launch.tree import Tree
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.options.cpu_settings import NATIVE_SAMPLES, STATES, WRAPPED, cpu_settings
from warplens.recording.options.library_ranges import silenced, switched_on
from warplens.recording.options.python_functions import write_functions
from warplens.recording.run import Run
from warplens.recording.run_facts import RunFacts
from warplens.recording.spool.writeback import Writeback


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: the exit status to return, and the pids of processes that still run.

    Without a status the program is among them.

    `over_by` says what ended the recording before the program, `killed_by` which signal the program got for it, `killed_all_by` its
    descendants.
    """

    exit_status: int | None
    start_ns: int
    end_ns: int
    still_running: tuple[int, ...]
    over_by: str | None = None
    killed_by: int = 0
    killed_all_by: int = 0


@dataclass(slots=True)
class Recording:
    """Runs `command` so that the agent records it into the existing directory `spool`.

    `early` is a clock sample taken as early as possible: the longer ago, the better the clock's rate is known.
    `waiting` gets the pids of descendants that outlive the program. `attend` is entered with the run and its program before
    that starts, and left when the recording is over. `converting`, if there is one, writes the report meanwhile. `begun`: it was tried
    to start the program.
    """

    command: Sequence[str]
    options: CaptureOptions
    spool: Path
    agent: Agent
    early: ClockSample
    job: str | None = None
    waiting: Callable[[list[int]], None] = lambda pids: None
    attend: Callable[[Run, Child], AbstractContextManager[object]] = lambda run, child: nullcontext()
    converting: Converting | None = None
    facts: RunFacts = field(init=False)
    begun: bool = field(init=False, default=False)
    _child: Child | None = field(init=False, default=None)
    _rest: _Rest | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.facts = RunFacts(self.spool, self.command, self.options.trace, job=self.job)

    def run(self) -> Outcome:
        """Run the program until it or its recording ends.

        NotStarted or CaptureError when it never began.

        Where the recording ends first, the program continues: call `rest` when its report is finished. Signals stay blocked: `release`
        them where the caller can report an interruption.
        """
        environment = child_environment(
            launch_environment(),
            agent=self.agent.path,
            spool=self.spool,
            sources=self.options.trace,
            extra=self.options.environment,
        )
        environment.update(switched_on(self.options.trace, environment))
        for trace, name, value in silenced(self.options.trace, environment):
            self.facts.note(
                "warning",
                "library-silent",
                f"-t {trace}: {name}={value} is set, which keeps the library silent: unset it.",
            )
        path = find_program(self.command[0], environment)
        if "cuda" in self.options.trace:
            environment.update(cupti_variables(self.options.cuda.cupti, path, environment))
        if self.options.cpu.functions is not None:
            write_functions(self.options.cpu.functions, self.spool)
        flags = cpu_settings(self.options).flags
        whole_tree = bool(
            self.options.cuda.backtrace or flags & WRAPPED or (flags and not self.options.cpu.python_only)
        )
        if flags and not whole_tree:
            environment[PYTHON] = "1"
        tree = Tree(self.spool, self.agent, self.facts, stub=CPU_STUB if whole_tree else STUB)
        writeback = Writeback(self.spool)
        child = Child(tree.register.waited)
        try:
            run = Run(
                self.spool,
                self.agent,
                self.early,
                written=self.facts,
                wording=COMMAND_LINE,
                options=self.options,
                kill=child.kill,
                wake=child.wake,
                also_look=lambda: self._look(tree, child),
            )
            try:
                tree.announce(environment, path)
                with self.attend(run, child):
                    start_ns = run.begin()
                    self.begun = True
                    child.start(path, self.command, environment)
                    tree.started(child.pid, path, self.command)
                    run.director.begin()
                    run.watch()
                    writeback.start()
                    sampler = self._sample_gpus(run)
                    observers = self._observe(child)
                    host = self._sample_host(run, child, observers)
                    self.facts.set(pid=child.pid)
                    _note_cuda_tool(
                        self.facts, environment.get(CUDA_CHAIN) if "cuda" in self.options.trace else None
                    )
                    self.facts.save()
                    still_running = child.wait(self.options.wait, self.waiting, run.director.finished.is_set)
                for sampling in (sampler, host, observers):
                    if sampling is not None:
                        sampling.stop()
                self.facts.set(usage=child.usage)
                over = run.director.state().over_by
                ended = child.status is not None
                end_ns = child.end_ns if self.options.wait == "primary" and ended else time.monotonic_ns()
                try:
                    tree.end(still_running)
                    run.end(
                        end_ns=end_ns,
                        primary_end_ns=child.end_ns if ended else None,
                        exit_status=child.status,
                        still_running=still_running,
                        other_tool=environment.get(CHAIN),
                    )
                    _note_metrics(self.facts, sampler)
                    if "nvtx" in self.options.trace:
                        self.facts.set_cost("nvtx", self.agent.pair_cost(self.spool))
                except (
                    Exception
                ) as error:  # whatever it is, the program has run, and what it recorded is there
                    self.facts.note(
                        "error",
                        "launcher",
                        f"The launcher could not note all it knows: {type(error).__name__}: {error}.",
                    )
                self.facts.save()
                if self.converting is not None:
                    self.converting.over()
            finally:
                writeback.stop()
                run.close()
                tree.close()
        except BaseException:
            child.release()
            raise
        self._child = child
        if not ended:
            self._rest = _Rest(child)
        return Outcome(
            _status(child),
            start_ns,
            end_ns,
            still_running=tuple(still_running),
            over_by=over,
            killed_by=child.killed_by,
            killed_all_by=child.killed_all_by,
        )

    def release(self) -> None:
        """Let signals reach us again.

        Those for a program that continues are passed on to it until `rest` is over.
        """
        if self._child is not None and self._rest is None:
            self._child.release()

    def aside(self) -> AbstractContextManager[Callable[[int], None]]:
        """As `Child.aside`: for a child of ours beside the program, which may continue."""
        assert self._child is not None
        return self._child.aside()

    def _look(self, tree: Tree, child: Child) -> None:
        tree.register.look()
        if self.converting is not None:
            self.converting.look(child.aside)

    def _sample_gpus(self, run: Run) -> GpuSampler | None:
        """Sample the GPUs from now on: after the program's start, which so inherits nothing of NVML."""
        metrics = self.options.gpu_metrics
        if metrics.kind == "none" or not (metrics.chosen or "cuda" in self.options.trace):
            return None
        is_wanted = None if self.options.keep_last is None else run.is_kept
        sampler = GpuSampler(self.spool, metrics, run.is_recording, charge=run.charge, is_wanted=is_wanted)
        sampler.start()
        return sampler

    def _observe(self, child: Child) -> Observers | None:
        """Record processes without Python from outside.

        If native samples or states are wanted and not all have the agent.
        """
        cpu = cpu_settings(self.options)
        if not self.options.cpu.python_only or not cpu.flags & (NATIVE_SAMPLES | STATES):
            return None
        return Observers(self.spool, self.agent, child.aside)

    def _sample_host(self, run: Run, child: Child, observers: Observers | None) -> HostSampler | None:
        """Sample memory and load, where anything of the CPU side is recorded."""
        if not cpu_settings(self.options).flags:
            return None
        is_wanted = None if self.options.keep_last is None else run.is_kept
        sampler = HostSampler(
            self.spool,
            child.descendants,
            run.is_recording,
            also_look=lambda pids: 0.0 if observers is None else observers.look(child.pid, pids),
            charge=run.charge,
            is_wanted=is_wanted,
        )
        sampler.start()
        return sampler

    def rest(self) -> int:
        """Wait for the end of a program that continues after its recording.

        Return the exit status to return.
        """
        assert self._rest is not None
        return self._rest.wait()


class _Rest:
    """The rest of a program after its recording ended.

    A thread passes signals on to it, while this one finishes the report.
    """

    def __init__(self, child: Child) -> None:
        self._child = child
        self._thread = threading.Thread(
            target=child.wait, args=("primary", lambda pids: None), name="warplens-rest"
        )
        self._thread.start()

    def wait(self) -> int:
        self._thread.join()
        self._child.release()
        status = _status(self._child)
        assert status is not None
        return status


def _note_cuda_tool(facts: RunFacts, tool: str | None) -> None:
    if tool is not None:
        facts.note(
            "info",
            "cuda-tool",
            f"Another CUDA tool, {tool}, was set in CUDA_INJECTION64_PATH, and is loaded first. "
            "Before CUDA 13.3, CUPTI serves only one tool: unset the variable if the report lacks "
            "CUDA.",
        )


def _note_metrics(facts: RunFacts, sampler: GpuSampler | None) -> None:
    if sampler is None:
        return
    if sampler.problem is not None:
        severity, message = sampler.problem
        facts.note(severity, "gpu-metrics", message)
    if sampler.missed:
        facts.note(
            "warning",
            "gpu-metrics-missed",
            "Some samples of the GPUs could not be read or written.",
            count=sampler.missed,
        )


def _status(child: Child) -> int | None:
    """The exit status to return: that of the program, or of the signal that was sent to it."""
    return child.status if child.status is None or not child.killed_by else 128 + child.killed_by
