"""Records processes without our agent from outside, each by a child of ours.

Nothing is started or loaded in them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from warplens.handover.priority import step_back
from warplens.recording.agent.library import Agent
from warplens.recording.finishing.expendable import Aside, close_all_but, fork

_MOST = 128  # processes at a time
_PATIENCE_MS = 2000
_AGENT = b"/libwarplens_agent.so"


class Observers:
    """Belongs to a recording into `spool`.

    `look` now and then, from one thread; then `stop`. Nothing is raised.

    A process is left alone until the second look that sees it: what a compiler or a shell starts a thousand times has ended by then.
    One that has the agent records itself. `aside` is that of `Child`.
    """

    def __init__(self, spool: Path, agent: Agent, aside: Aside) -> None:
        self._spool, self._agent, self._aside = spool, agent, aside
        self._stop, self._stopping = os.pipe()  # closing the second one ends them
        self._alive, self._living = os.pipe()  # they hold the second one
        self._seen: dict[int, str] = {}  # processes that were seen, with their programs
        self._observed: dict[
            int, int
        ] = {}  # process -> our child; 0: it records itself, or cannot be observed

    def look(self, primary: int, pids: Sequence[int]) -> float:
        """Begin to record those of `pids` that have lived for a while; `primary` at once.

        Return the CPU seconds that forks took.
        """
        forking = 0.0
        for pid in [pid for pid in self._seen if pid not in pids]:
            self._forget(pid)
        for pid in pids:
            program = _program(pid)
            if program is None:
                continue
            before = self._seen.get(pid)
            if before != program or (self._observed.get(pid) and not _is_there(self._observed[pid])):
                self._forget(pid)  # it is another program now, or a library of the agent came into it
            self._seen[pid] = program
            if pid not in self._observed and (pid == primary or before == program):
                begun = time.thread_time()
                self._observed[pid] = self._begin(pid)
                forking += time.thread_time() - begun
        return forking

    def stop(self) -> None:
        """End them, and wait until all is written."""
        for descriptor in (self._stopping, self._stop, self._living):
            os.close(descriptor)
        waiting = select.poll()
        waiting.register(self._alive, select.POLLHUP)
        waiting.poll(_PATIENCE_MS)
        os.close(self._alive)
        for child in self._observed.values():
            if child:
                with suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)

    def _begin(self, pid: int) -> int:
        if sum(map(bool, self._observed.values())) >= _MOST or _has_agent(pid):
            return 0
        return fork(
            self._aside, lambda: _observe(self._agent, self._spool, pid, stop=self._stop, living=self._living)
        )

    def _forget(self, pid: int) -> None:
        self._seen.pop(pid, None)
        self._observed.pop(pid, None)


def _observe(agent: Agent, spool: Path, pid: int, stop: int, living: int) -> NoReturn:
    """Runs in the child process.

    Of the launcher it has its memory and no more: what it held open, others wait to see closed.
    """
    code = 1
    try:
        close_all_but(stop, living)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        step_back(0, first_to_go=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are meant for the program
        ctypes.CDLL(None).prctl(15, b"warplens-watch", 0, 0, 0)  # PR_SET_NAME
        code = agent.observe(spool, pid, stop)
    finally:
        os._exit(code)


def _program(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:  # it has ended, or is not ours to look at
        return None


def _has_agent(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return _AGENT in file.read()
    except OSError:
        return True


def _is_there(child: int) -> bool:
    try:
        os.kill(child, 0)
    except OSError:
        return False
    return True
