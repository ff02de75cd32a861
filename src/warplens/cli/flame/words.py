"""Names and places of the nodes of a flame graph."""

from __future__ import annotations

from pathlib import PurePath

from warplens.analysis.cpu.frames import Frame


def called(frame: Frame, by: str) -> str:
    """Return the name of a node that a frame is an example of."""
    if by == "module":
        return "tasks" if frame.kind == "task" else _file(frame.module or frame.file) or frame.function
    if by == "line":
        place = where(frame, by)
        return f"{frame.function} ({place})" if place else frame.function
    return frame.function


def where(frame: Frame, by: str) -> str:
    """Return the file and line of a node: of a function the line it begins in; else its module.

    Empty if nothing is known.
    """
    if by == "module":
        return frame.kind
    line = frame.line if by == "line" else frame.first_line
    if frame.file and (frame.kind == "python" or by == "line"):
        return f"{_file(frame.file)}:{line}" if line else _file(frame.file)
    return _file(frame.module)


def _file(path: str | None) -> str:
    return PurePath(path).name if path else ""
