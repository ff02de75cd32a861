"""What the sampler of Python stacks wrote, put together again: each sample with its stack, outermost frame first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.programs.launching import given_time
from tests.support.programs.python_running import PythonPrograms, PythonRun
from tests.support.reports.spool_records import RawSpool

PYTHON_SAMPLES = 1
ON_CPU, GIL, CUT, EXCEPTION = 1, 2, 8, 16
OUTER, READY = 32, 64  # of tasks
OF_THREADS, OF_TASKS = (1, 2), (3,)  # SampleKind


@dataclass(frozen=True)
class StackFrame:
    """One frame: function, file, lines."""

    name: str
    file: str
    line: int
    first_line: int


@dataclass(frozen=True)
class Sample:
    """One record: `count` ticks found the thread so."""

    pid: int
    tid: int
    frames: tuple[StackFrame, ...]
    count: int
    flags: int
    task: str | None
    number: int  # of a task
    start: int
    end: int

    @property
    def names(self) -> tuple[str, ...]:
        """The functions, outermost first."""
        return tuple(frame.name for frame in self.frames)

    def has(self, *names: str) -> bool:
        """Whether these functions are in it, last parts of qualified names, each called by the one before it."""
        short = [name.rpartition(".")[2] for name in self.names]
        return any(short[at : at + len(names)] == list(names) for at in range(len(short)))


def samples_of(spool: RawSpool, kinds: Sequence[int] = OF_THREADS) -> Iterator[Sample]:
    """All samples of one process, of threads or of tasks."""
    nodes = {record["node"]: record for record in spool.of("cpu_frame")}
    stacks: dict[int, tuple[StackFrame, ...]] = {0: ()}

    def stack(node: int) -> tuple[StackFrame, ...]:
        missing = []
        while node not in stacks:
            missing.append(node)
            node = nodes[node]["parent"]
        for inner in reversed(missing):
            record = nodes[inner]
            frame = StackFrame(
                record.name or "",
                spool.text(record["file"]) if record["file"] else "",
                record["line"],
                record["first_line"],
            )
            stacks[inner] = (*stacks[record["parent"]], frame)
        return stacks[missing[0] if missing else node]

    for record in spool.of("cpu_sample"):
        assert record["start"] <= record["end"]
        assert record["count"] > 0
        if record["domain"] not in kinds:
            continue
        more = record["count"], record["flags"], record.name, record["cpu"], record["start"], record["end"]
        yield Sample(spool.facts["process"]["pid"], record["tid"], stack(record["stack"]), *more)


def samples(run: PythonRun, kinds: Sequence[int] = OF_THREADS) -> list[Sample]:
    """All samples of a run."""
    return [sample for spool in run.spools for sample in samples_of(spool, kinds)]


def sampled(
    programs: PythonPrograms,
    command: Sequence[str | Path],
    enough: Callable[[list[Sample]], bool],
    seconds: float = 1.0,
    kinds: Sequence[int] = OF_THREADS,
    **variables: str,
) -> tuple[PythonRun, list[Sample]]:
    """Run a program, with a number of seconds as its last word, until there is `enough` to see in samples of these kinds."""

    def once(seconds: float) -> tuple[PythonRun, list[Sample]]:
        run = programs.run(
            [*command, str(seconds)],
            PYTHON_SAMPLES,
            capture=programs.capture(PYTHON_SAMPLES, python_hz=1000),
            **variables,
        )
        assert run.status == 0, run.stderr
        return run, samples(run, kinds)

    return given_time(once, lambda result: enough(result[1]), seconds)
