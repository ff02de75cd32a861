"""Running a program that nothing can be recorded of, because the disk is full: what somebody started runs all the same."""

from __future__ import annotations

import errno

from warplens.capture.child import Child
from warplens.capture.environment import launch_environment
from warplens.capture.options import CaptureOptions
from warplens.capture.program import find_program

FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException | None) -> bool:
    """Say whether something failed because a disk has no room, or its user none on it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__
    return False


def run_unrecorded(command: tuple[str, ...], options: CaptureOptions) -> int:
    """Run the program as it would run without us; return the exit status to return. NotStarted."""
    environment = {**launch_environment(), **dict(options.environment)}
    path = find_program(command[0], environment)
    child = Child()
    try:
        child.start(path, command, environment)
        child.wait(options.wait, lambda pids: None)
    finally:
        child.release()
    return child.status or 0
