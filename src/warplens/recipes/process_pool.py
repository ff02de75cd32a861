"""Computes parts in processes of this machine.

Each worker is `python -m warplens.recipes.worker`. `multiprocessing` is not used: it would run the user's
main script again in each worker, and where one worker is killed it does not say which part was lost.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from warplens.recipes.engine import PartTask, Result, compute

TRIES = 3  # of a part whose worker is lost


@dataclass
class _Left:
    """Parts that are to be computed, each with the number of workers that were lost with it."""

    parts: queue.SimpleQueue[tuple[PartTask, int] | None]
    results: queue.SimpleQueue[Result]
    workers: int


class ProcessPool:
    """As many processes as there are CPUs to run on, or `jobs`; with one, this process does the work."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))

    def run(self, work: Sequence[PartTask]) -> Iterator[Result]:
        """Compute all parts. A part is broken when each of three workers was lost with it."""
        jobs = min(self.jobs, len(work))
        if jobs <= 1:
            yield from map(compute, work)
            return
        left = _Left(queue.SimpleQueue(), queue.SimpleQueue(), jobs)
        for one in work:
            left.parts.put((one, 0))
        threads = [threading.Thread(target=_serve, args=(left,), daemon=True) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        try:
            for _ in work:
                yield left.results.get()
        finally:
            for _ in threads:
                left.parts.put(None)


def _serve(left: _Left) -> None:
    """Give parts to one worker after the other, until there is none left."""
    worker: subprocess.Popen[bytes] | None = None
    while (item := left.parts.get()) is not None:
        part, lost = item
        if worker is None:
            worker = _start(left.workers)
        try:
            left.results.put(_asked(worker, part))
        except (OSError, EOFError, pickle.UnpicklingError):
            _end(worker)
            worker = None
            if lost + 1 < TRIES:
                left.parts.put((part, lost + 1))
            else:
                error = f"{part.path}: the worker process ended {TRIES} times while it read this"
                left.results.put(Result(part.number, None, error=error))
    if worker is not None:
        _end(worker)


def _start(workers: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "warplens.recipes.worker", str(workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _asked(worker: subprocess.Popen[bytes], part: PartTask) -> Result:
    """Return a worker's result. OSError or EOFError where it ended."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    pickle.dump(part, worker.stdin)
    worker.stdin.flush()
    result: Result = pickle.load(worker.stdout)
    return result


def _end(worker: subprocess.Popen[bytes]) -> None:
    for stream in (worker.stdin, worker.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    worker.wait()
