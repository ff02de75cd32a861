"""Finds the place in the program of rows with a stack: the innermost function that is not Python's own waiting code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.cpu.frames import NO_STACK, Frame, FrameTable

if TYPE_CHECKING:
    from warplens.report import Report

# Modules in which waiting is waiting for something to happen, not for a lock that somebody holds.
_WAITING = (
    "threading.py",
    "queue.py",
    "selectors.py",
    "concurrent/futures/",
    "multiprocessing/",
    "asyncio/",
    "torch/utils/data/",
    "socketserver.py",
    "subprocess.py",
)
_LOADING = ("queue.py", "multiprocessing/", "torch/utils/data/", "grain/", "tensorflow/python/data/")
_INTERNAL = ("take_gil", "drop_gil", "create_gil", "PyEval_RestoreThread", "PyEval_AcquireThread")


@dataclass(frozen=True)
class StackPlace:
    """Where a thread was. `function`: as people read it; `waits`: for something to happen; `loads`: for data; `internal`: for the GIL."""

    function: str | None
    waits: bool
    loads: bool
    internal: bool


class StackPlaces:
    """The stacks of a report, each looked at once."""

    def __init__(self, report: Report) -> None:
        self._frames = FrameTable.of(report)
        self._known: dict[int | None, StackPlace] = {}

    def place(self, stack: int | None) -> StackPlace:
        """Return where a stack is; `function` is None where no stack was taken."""
        if stack not in self._known:
            position = int(self._frames.positions(pa.array([stack], pa.int64()))[0])
            self._known[stack] = _place(self._frames.path(position))
        return self._known[stack]


def _place(path: tuple[Frame, ...]) -> StackPlace:
    inner = [frame for frame in reversed(path) if frame.function != NO_STACK]
    python = [frame for frame in inner if frame.kind == "python"]
    # the native code above the innermost function of Python is what that called
    native = inner[: inner.index(python[0])] if python else inner
    files = [(frame.file or "").replace("\\", "/") for frame in python]
    waits = bool(python and is_waiting(files[0])) or any("queue" in frame.function.lower() for frame in native)
    loads = any(part in file for file in files[:4] for part in _LOADING) or any("SimpleQueue" in frame.function for frame in native)
    internal = any(frame.function.startswith(_INTERNAL) for frame in native)
    shown = python[0] if python else inner[0] if inner else None
    return StackPlace(None if shown is None else named(shown), waits, loads, internal)


def is_waiting(file: str) -> bool:
    """Return whether a source file of Python is one in which waiting is waiting for something to happen."""
    return any(part in file for part in _WAITING)


def named(frame: Frame) -> str:
    """Return a function with the file that it is in, as a subject has it: without folders and lines, which differ in the next recording."""
    where = frame.file if frame.kind == "python" else frame.module
    return f"{frame.function} ({where.replace(chr(92), '/').rsplit('/', 1)[-1]})" if where else frame.function
