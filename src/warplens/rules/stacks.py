"""Finds the program's place of rows with a stack.

The innermost function that is not Python's own waiting code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.cpu.frames import NO_STACK, Frame, FrameTable, is_library

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
# What only waits for its caller: the function that calls it is the one that asks.
_ASKED_BY = (
    "threading.py",
    "queue.py",
    "selectors.py",
    "multiprocessing/queues.py",
    "multiprocessing/synchronize.py",
    "multiprocessing/connection.py",
    "multiprocessing/managers.py",
)
# Functions of those modules in which a thread gives something away, starts a thread or waits for its end: never for data.
_GIVES = ("put", "start", "join", "join_thread", "close")
# Workers that wait for work, and what hands it out to them: such waits are never for data.
_WORKERS = (
    "torch/utils/data/_utils/worker.py",
    "torch/utils/data/_utils/pin_memory.py",
    "concurrent/futures/thread.py",
    "concurrent/futures/process.py",
    "multiprocessing/process.py",
    "multiprocessing/forkserver.py",
    "multiprocessing/resource_tracker.py",
    "execnet/",
    "xdist/",
    "joblib/",
    "loky/",
    "billiard/",
    "celery/",
    "distributed/",
)
# The functions of multiprocessing/pool.py that run in its workers and helper threads.
_POOL_WORKERS = ("worker", "_handle_tasks", "_handle_results", "_handle_workers", "_wait_for_updates")
_ITERATOR = "torch/utils/data/dataloader.py"
_COORDINATORS = ("multiprocessing/pool.py", "concurrent/futures/_base.py", "subprocess.py")
_INTERNAL = ("take_gil", "drop_gil", "create_gil", "PyEval_RestoreThread", "PyEval_AcquireThread")


@dataclass(frozen=True)
class StackPlace:
    """Where a thread was.

    `function`: as people read it; `waits`: for something to happen; `loads`: for data; `internal`:
    for the GIL.

    `coordinates`: it waits for the results of a pool of workers; `iterates`: within a DataLoader's iterator; `caller`: the innermost
    function that is no library's; `in_loop`: true in an event loop, false in a thread that runs calls for one, else None.
    """

    function: str | None
    waits: bool
    loads: bool
    internal: bool
    coordinates: bool
    iterates: bool
    caller: str | None
    in_loop: bool | None


class StackPlaces:
    """The stacks of a report, each looked at once."""

    def __init__(self, report: Report) -> None:
        self._frames = FrameTable.of(report)
        self._known: dict[int | None, StackPlace] = {}

    def place(self, stack: int | None) -> StackPlace:
        """Return where a stack is; `function` is None if no stack was taken."""
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
    waits = bool(python and is_waiting(files[0])) or any(
        "queue" in frame.function.lower() for frame in native
    )
    loads = any(part in file for file in files[:4] for part in _LOADING) or any(
        "SimpleQueue" in frame.function for frame in native
    )
    asker = next((at for at, file in enumerate(files) if not any(part in file for part in _ASKED_BY)), None)
    if python and (
        asker is None
        or _is_worker(python[asker], files[asker])
        or any(frame.function.rpartition(".")[2] in _GIVES for frame in python[:asker])
    ):
        loads = False
    coordinates = asker is not None and any(part in files[asker] for part in _COORDINATORS)
    iterates = any(
        frame.function.endswith("__next__") and _ITERATOR in file
        for frame, file in zip(python, files, strict=True)
    )
    caller = next(
        (named(frame) for frame, file in zip(python, files, strict=True) if not is_library(file)), None
    )
    in_loop = (
        True
        if any("asyncio/" in file for file in files)
        else False
        if any(_runs_calls(file) for file in files)
        else None
    )
    internal = any(frame.function.startswith(_INTERNAL) for frame in native)
    shown = python[0] if python else inner[0] if inner else None
    return StackPlace(
        None if shown is None else named(shown),
        waits,
        loads,
        internal=internal,
        coordinates=coordinates,
        iterates=iterates,
        caller=caller,
        in_loop=in_loop,
    )


def _runs_calls(file: str) -> bool:
    return any(part in file for part in ("anyio/", "concurrent/futures/thread.py"))


def _is_worker(asker: Frame, file: str) -> bool:
    if "multiprocessing/pool.py" in file:
        return asker.function.rpartition(".")[2] in _POOL_WORKERS
    return any(part in file for part in _WORKERS)


def is_waiting(file: str) -> bool:
    """Return whether a source file of Python is one in which waiting is waiting for something to happen."""
    return any(part in file for part in _WAITING)


def named(frame: Frame) -> str:
    """Return a function with its file, for a subject.

    Without folders and lines, which differ in the next recording.
    """
    where = frame.file if frame.kind == "python" else frame.module
    return f"{frame.function} ({where.replace(chr(92), '/').rsplit('/', 1)[-1]})" if where else frame.function
