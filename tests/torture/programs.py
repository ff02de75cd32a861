"""The programs of the suite: C and Python, with children and threads of every kind."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.native.native_build import build_target
from tests.support.optional_dependencies import LIB

TARGETS = Path(__file__).resolve().parents[1] / "targets"


@dataclass(frozen=True)
class Shape:
    """One way a program multiplies: the mode of the target, ranges per thread or process, how many of those."""

    language: str
    mode: str
    ranges: int
    count: int
    outlives: bool = False  # something of it lives longer than its first process
    stub: bool = False  # needs the stub in every process

    @property
    def name(self) -> str:
        """As it is printed and chosen."""
        return f"{self.language}-{self.mode}"


SHAPES = (
    Shape("c", "work", 1500, 1),
    Shape("c", "threads", 400, 8),
    Shape("c", "one-range", 1, 400),
    Shape("c", "fork", 400, 4),
    Shape("c", "clone", 400, 4),
    Shape("c", "vfork", 400, 4),
    Shape("c", "shorts", 20, 30),
    Shape("c", "exec", 300, 5),
    Shape("c", "daemon", 1500, 1, outlives=True),
    Shape("c", "empty", 300, 4, stub=True),
    Shape("c", "empty-vfork", 300, 4, stub=True),
    Shape("py", "work", 1000, 1),
    Shape("py", "threads", 200, 4),
    Shape("py", "tasks", 200, 8),
    Shape("py", "fork", 300, 3),
    Shape("py", "daemon", 800, 1, outlives=True),
    Shape("py", "subprocess", 200, 2),
    Shape("py", "spawn", 200, 2),
    Shape("py", "forkserver", 200, 2),
    # multiprocessing's fork; "fork" above is os.fork
    Shape("py", "mp-fork", 200, 3),
)


def shapes() -> list[Shape]:
    """Those that can be recorded whole by what is built."""
    stub = any(LIB.glob("libwarplens_preload*"))
    return [shape for shape in SHAPES if stub or not shape.stub]


@dataclass(frozen=True)
class Program:
    """A shape with its random choices; `words(log)` starts it."""

    shape: Shape
    flags: str
    ranges: int
    binary: Path

    def words(self, log: Path) -> list[str]:
        """The command line; `log` takes the truth."""
        start = (
            [str(self.binary)]
            if self.shape.language == "c"
            else [sys.executable, str(TARGETS / "processes" / "torture.py")]
        )
        return [*start, str(log), self.flags or "-", self.shape.mode, str(self.ranges), str(self.shape.count)]

    def __str__(self) -> str:
        return f"{self.shape.name}({self.flags or '-'} {self.ranges})"


def build(folder: Path) -> Path:
    """Compile the target once; return the program."""
    binary = folder / "torture"
    if not binary.exists():
        build_target("torture", binary)
    return binary


def choose(rng: random.Random, binary: Path, among: list[Shape]) -> Program:
    """A program by chance: with and without pauses, dying of signals or ending in an orderly way."""
    shape = rng.choice(among)
    dense = rng.random() < 0.3
    flags = ("d" if dense else "") + ("h" if rng.random() < 0.5 else "")
    return Program(shape, flags, shape.ranges * (rng.choice((1, 4)) if dense else 1), binary)
