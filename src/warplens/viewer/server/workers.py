"""Runs requests in separate threads.

Quick ones, those of seconds, and SQL have their own, so that no viewport waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from warplens.viewer import limits

_KEPT = 64  # answers
Work = Callable[[], Any]


class Busy(Exception):
    """The request needs more computing, or more time, than a request may take."""


class Workers:
    """Threads for three sorts of work.

    Answers of heavy work are kept: the same request, later or in the meantime, gets the same answer.
    """

    def __init__(self, quick: int = 4, heavy: int = 2, sql: int = 2) -> None:
        self._quick = ThreadPoolExecutor(quick, "quick")
        self._heavy = ThreadPoolExecutor(heavy, "heavy")
        self._sql = ThreadPoolExecutor(sql, "sql")
        self._answers: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._waiting = 0

    async def quick(self, work: Work) -> Any:
        """Return what work of milliseconds returns."""
        return await asyncio.wrap_future(self._quick.submit(work))

    async def sql(self, work: Work) -> Any:
        """Return what a question returns that ends itself when it takes too long.

        Busy where too many wait.
        """
        return await asyncio.wrap_future(self._submit(self._sql, work))

    async def heavy(self, key: Hashable, work: Work, seconds: float = limits.HEAVY_S) -> Any:
        """Return the result of work of seconds.

        Busy if it takes longer, and it continues for the next request.
        """
        with self._lock:
            future = self._answers.get(key)
            if (
                future is not None
                and future.done()
                and (future.cancelled() or future.exception() is not None)
            ):
                future = None
        if future is None:
            future = self._submit(self._heavy, work)
            with self._lock:
                self._answers[key] = future
                while len(self._answers) > _KEPT:
                    self._answers.popitem(last=False)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except (asyncio.TimeoutError, TimeoutError):
            raise Busy("the request is still running: try again later") from None

    def begin(self, work: Work) -> None:
        """Do work that nobody waits for yet; its errors go to the next caller of the same work."""
        self._submit(self._heavy, work)

    def _submit(self, pool: ThreadPoolExecutor, work: Work) -> Future[Any]:
        with self._lock:
            if self._waiting >= limits.WAITING:
                raise Busy("too many requests are waiting: try again later")
            self._waiting += 1
        future = pool.submit(work)
        future.add_done_callback(self._done)
        return future

    def _done(self, _: Future[Any]) -> None:
        with self._lock:
            self._waiting -= 1

    @property
    def busy(self) -> bool:
        """Whether something is being computed that may take seconds."""
        return self._waiting > 0

    def close(self) -> None:
        """Begin nothing more."""
        for pool in (self._quick, self._heavy, self._sql):
            pool.shutdown(wait=False, cancel_futures=True)
