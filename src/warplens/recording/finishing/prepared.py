"""A child of the command that loads the packages for the report while the program runs.

Loading takes longer than writing the report of a short run.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings

# Only what the interpreter has loaded by itself: the child begins the earlier.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, NoReturn

    Work = Callable[[Mapping[str, Any]], bool]
    Load = Callable[[], tuple[Work, Iterable[object]]]

_PATIENCE_S = 0.5
_STARVED = 0.3  # of a CPU
_END = object()
_AWAY, _AT_WORK = b"-", b"+"  # whether the child takes the work


class Prepared:
    """A forked child that calls `load` with spare CPU time, and its result for the request of `finish`.

    `load` returns the work, and steps that load more, which only longer runs need.
    Fork it before this process has threads. It ends with this process, or when `finish` is never called.
    """

    def __init__(self, load: Load) -> None:
        request, self._request = os.pipe()
        self._answer, answer = os.pipe()
        us = os.getpid()
        # Signals of the terminal, and those for the whole group, are the program's, not the child's.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                self._pid = os.fork()
            except OSError:
                self._pid = -1
        if self._pid == 0:
            os.close(self._request)
            os.close(self._answer)
            _be_the_child(load, request, answer, us=us, mask=mask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(request)
        os.close(answer)

    def finish(self, request: Mapping[str, Any]) -> tuple[bool, str | None] | None:
        """Return what the work returns, or False and how the child ended. Ctrl-C reaches the work once.

        None: the child has not loaded the packages, and did nothing.
        """
        import json

        from warplens.recording.finishing.expendable import DONE, end_of, how_it_ended, interrupt

        try:
            os.write(self._request, json.dumps(request).encode() + b"\n")
            state = os.read(self._answer, 1)
            if state in (b"", _AWAY):
                self.close()
                return None
            answer = os.read(self._answer, 1)
        except KeyboardInterrupt:
            interrupt(self._pid)
            raise
        except OSError:  # the child has ended: the system had too little memory
            return None
        return answer == DONE, None if answer else how_it_ended(end_of(self._pid))

    def close(self) -> None:
        """End the child if it has no work."""
        for descriptor in (self._request, self._answer):
            try:
                os.close(descriptor)
            except OSError:
                continue


def _be_the_child(
    load: Load, request: int, answer: int, us: int, mask: set[int | signal.Signals]
) -> NoReturn:
    import json

    from warplens.recording.finishing.expendable import (
        DONE,
        NOT_DONE,
        be_expendable,
        flush_output,
        take_signals,
    )

    def run() -> None:
        loading = _Loading(load)
        words = _line(request)
        work = loading.result() if words else None
        if work is None:
            os.write(answer, _AWAY)
            return
        while signal.sigtimedwait(signal.valid_signals(), 0) is not None:
            pass  # the program had them
        take_signals(mask)
        os.write(answer, _AT_WORK)
        done = work(json.loads(words))
        flush_output()  # nobody waits for the end of this process
        os.write(answer, DONE if done else NOT_DONE)

    be_expendable(us, run)


class _Loading:
    """Loads on a thread that comes last, so that the program has the CPUs."""

    def __init__(self, load: Load) -> None:
        import threading

        self._load = load
        self._work: Work | None = None
        self._is_asked = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> Work | None:
        """Wait for the work; None if others leave this thread no CPU, or a package is missing."""
        import time

        from warplens.handover.priority import come_back

        self._is_asked = True
        come_back(self._thread.native_id or 0)
        while self._thread.is_alive():
            before = time.process_time()
            self._thread.join(_PATIENCE_S)
            if self._thread.is_alive() and time.process_time() - before < _PATIENCE_S * _STARVED:
                return None
        return self._work

    def _run(self) -> None:
        from warplens.handover.priority import come_last

        come_last()
        try:
            self._work, steps = self._load()
            more = iter(steps)
            while not self._is_asked and next(more, _END) is not _END:
                pass
        except (ImportError, MemoryError, OSError):
            pass


def _line(descriptor: int) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        block = os.read(descriptor, 1 << 16)
        if not block:
            return b""
        data += block
    return data


def is_possible() -> bool:
    """Say whether this process may fork a child."""
    threads = sys.modules.get("threading")
    return hasattr(os, "fork") and sys.platform == "linux" and (not threads or threads.active_count() == 1)
