"""A process in the program's group that only receives signals.

A signal that reaches it has reached the program, too: `kill -INT -GROUP`, `timeout`, a service manager.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from contextlib import suppress
from typing import NoReturn

from warplens.recording.finishing.expendable import close_all_but, die_with

_PATIENCE_S = 0.02  # a sender may need a call for each process
_PAUSE_S = 0.001


class Witness:
    """Forked by the main thread before there are others, with all signals blocked.

    The kernel notes a signal for it at once, however busy the machine is; the process itself only forgets them.
    Where no process can be made, nothing is received.
    """

    def __init__(self) -> None:
        self.pid = 0
        request, self._request = os.pipe()
        self._answer, answer = os.pipe()
        us = os.getpid()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with warnings.catch_warnings(), suppress(OSError):
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
            if self.pid == 0:
                _be_the_witness(request, answer, us)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(request)
        os.close(answer)

    def has(self, number: int) -> bool:
        """Say whether the whole group got the signal `number` that has just reached us."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.pid:
            pending = _pending(self.pid)
            if pending >= 0 and pending >> (number - 1) & 1:
                with suppress(OSError):
                    os.write(self._request, bytes([number]))
                    os.read(self._answer, 1)
                return True
            if pending < 0 or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_S)
        return False

    def close(self) -> None:
        """End it."""
        if self.pid:
            with suppress(ChildProcessError):  # another process may have its number by then
                if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
            self.pid = 0
        for descriptor in (self._request, self._answer):
            with suppress(OSError):
                os.close(descriptor)


def _be_the_witness(request: int, answer: int, parent: int) -> NoReturn:
    try:
        die_with(parent)
        close_all_but(request, answer)
        while number := os.read(request, 1):
            signal.sigtimedwait(number, 0)
            os.write(answer, number)
    finally:
        os._exit(0)


def _pending(pid: int) -> int:
    """Return the signals that wait for a process, a bit each, from 1 on; -1 if it has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"ShdPnd:"):
                    return int(line.split()[1], 16)
    except OSError:
        return -1
    return 0
