"""Undoes the signal settings that the test process inherits: `nohup` ignores SIGHUP, a shell's background jobs ignore SIGINT."""

from __future__ import annotations

import signal

# Python ignores these itself, and its subprocesses get them back.
_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


def reset_inherited_signals() -> None:
    """Let every program that a test starts begin with default signal actions and nothing blocked.

    The test process itself still survives the signals that it inherited as ignored: they get a handler that does nothing,
    which `exec` replaces by the default action.
    """
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
