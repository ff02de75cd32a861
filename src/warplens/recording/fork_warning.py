"""Avoids a warning of some Pythons about threads after a fork.

They mistake a thread that begins after a fork for an older one.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import FrameType

# They count the threads after the `after_in_parent` hooks; 3.12 and, from 3.14.1 on, newer ones count before (gh-137109).
COUNTS_LATE = (3, 13) <= sys.version_info < (3, 14, 1)

_waiting: list[tuple[FrameType, Callable[[], None]]] = []


def after_hooks(function: Callable[[], None]) -> None:
    """From a hook: let the main thread call `function` after the fork has returned to its caller."""
    _waiting[:] = [(sys._getframe(2), function)]
    _ask()


def _ask() -> None:
    if ctypes.pythonapi.Py_AddPendingCall(_C_LOOK, None) != 0:  # too many wait already
        _call()


def _look(_: int | None) -> int:
    if _waiting and _is_below(sys._getframe(1), _waiting[0][0]):  # a hook runs
        _ask()
    else:
        _call()
    return 0


_C_LOOK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_look)


def _is_below(frame: FrameType | None, caller: FrameType) -> bool:
    while frame is not None and frame.f_back is not caller:
        frame = frame.f_back
    return frame is not None


def _call() -> None:
    if _waiting:
        _waiting.pop()[1]()
