"""Runs expendable work in a forked child.

If memory gets short, the kernel ends the child first, and our exit code stays the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import NoReturn

from warplens.handover.priority import step_back

_PR_SET_PDEATHSIG = 1
DONE, NOT_DONE = b"1", b"0"

Aside = Callable[[], AbstractContextManager[Callable[[int], None]]]


def run_expendable(
    work: Callable[[], bool], aside: Aside = lambda: nullcontext(lambda pid: None)
) -> tuple[bool, str | None]:
    """Call `work` in a child.

    Return what it returns, or False and how the child ended, where it ended without an answer.

    A fork, not a new interpreter: that would cost each recording 0.1 s more. Ctrl-C reaches `work` as KeyboardInterrupt, once, and
    is raised here when the child has ended. The child does not outlive us. Where there cannot be one, `work` is called here.
    `aside` is entered while the child is started, and is given its pid: nobody else may wait for it.
    """
    flush_output()  # or both of us would
    reader, writer = os.pipe()
    us = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until both of us are ready for it
    pid = 0
    try:
        pid = fork(aside, lambda: _be_the_child(work, writer, us, mask=mask))
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        answer = os.read(reader, 1)
    except KeyboardInterrupt:
        if pid:
            interrupt(pid)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(reader)
    if not pid:
        return work(), None
    code = end_of(pid)
    return answer == DONE, None if answer else how_it_ended(code)


def how_it_ended(code: int | None) -> str:
    """Describe how a child ended.

    `code` is that of `subprocess`, negative for a signal, None if unknown.
    """
    if code is None:
        return "no exit code"
    if code == -signal.SIGKILL:
        return "SIGKILL, which the system sends if memory is short"
    if code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}"
    return f"exit code {code}"


def fork(aside: Aside, child: Callable[[], NoReturn]) -> int:
    """Call `child` in a child, and return its pid; 0 if there cannot be one."""
    with aside() as adopt, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # our other threads hold nothing that the child needs
        try:
            pid = os.fork()
        except OSError:
            return 0
        if pid == 0:
            child()
        adopt(pid)
        return pid


def _be_the_child(
    work: Callable[[], bool], writer: int, parent: int, mask: set[int | signal.Signals]
) -> NoReturn:
    def run() -> None:
        take_signals(mask)
        os.write(writer, DONE if work() else NOT_DONE)

    be_expendable(parent, run)


def be_expendable(parent: int, run: Callable[[], None]) -> NoReturn:
    """Call `run` in a child that was just forked, and end it.

    The child ends with its `parent`, and is the first to go where memory gets short. Until `run`
    calls `take_signals`, the signals that were blocked at the fork wait.
    """
    code = 1
    try:
        die_with(parent)
        step_back(0, first_to_go=True)
        run()
        code = 0
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        flush_output()
        os._exit(code)


def die_with(parent: int) -> None:
    """End this child when its parent `parent` ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def take_signals(mask: set[int | signal.Signals]) -> None:
    """Block only the signals of `mask` from now on; Ctrl-C interrupts once."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted_once)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def close_all_but(*kept: int) -> None:
    """Close all descriptors but those in `kept`: others wait to see them closed. The standard streams become empty."""
    null = os.open(os.devnull, os.O_RDONLY)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    begin = 3
    for descriptor in sorted(kept):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def flush_output() -> None:
    """Write what the standard streams hold, as far as they take it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()


def _interrupted_once(number: int, frame: FrameType | None) -> NoReturn:
    """Handle Ctrl-C: neither the next one nor ours beside the terminal's interrupts the clean-up."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def interrupt(pid: int) -> None:
    """Pass Ctrl-C on and wait for the end of the child; one more ends it at once."""
    try:
        os.kill(pid, signal.SIGINT)
        end_of(pid)
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGKILL)
        end_of(pid)


def end_of(pid: int) -> int | None:
    """Wait for the end of a child; return its code, None if another thread was faster."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # the thread that waits for the program was faster
        return None
