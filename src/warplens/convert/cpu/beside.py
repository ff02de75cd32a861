"""Does several things beside each other, each on a thread: when a program has ended, its cores are free.

NumPy and Arrow let other threads run while they work on large arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MOST = 2  # each thread holds rows and their tables: memory has a budget


def cores() -> int:
    """Return the number of useful parallel jobs on this machine."""
    return min(len(os.sched_getaffinity(0)), _MOST) if hasattr(os, "sched_getaffinity") else 1


class Beside:
    """Runs jobs, `at_once` at most. `stopped`: one of them failed, and the others may end early."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._pool: ThreadPoolExecutor | None = None
        self.stopped = False

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Do all of them. Raise what one of them raises, when all have ended."""
        if self._at_once == 1 or len(jobs) == 1:
            for job in jobs:
                job()
            return
        from concurrent.futures import ThreadPoolExecutor, wait  # small runs need none

        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._at_once, "warplens-table")
        futures = [self._pool.submit(job) for job in jobs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            self.stopped = True
            for future in futures:
                future.cancel()
            wait(futures)
            raise

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
