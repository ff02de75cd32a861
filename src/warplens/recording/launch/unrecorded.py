"""Runs a program without recording because the disk is full."""

from __future__ import annotations

from warplens.recording.launch.child import Child
from warplens.recording.launch.environment import launch_environment
from warplens.recording.launch.program import find_program
from warplens.recording.options.capture import CaptureOptions


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
