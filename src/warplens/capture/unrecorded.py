"""Running a program that nothing can be recorded of, because the disk is full: what somebody started runs all the same."""

from __future__ import annotations

from warplens.capture.child import Child
from warplens.capture.environment import launch_environment
from warplens.capture.options import CaptureOptions
from warplens.capture.program import find_program


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
