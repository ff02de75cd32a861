"""Finds the program's line of a CUDA call.

The innermost function of its stack that is no library's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.cpu.frames import Frame, FrameTable, is_library
from warplens.rules.base import Evidence

if TYPE_CHECKING:
    from warplens.report import Report

_LOCATED = 10
_Line = tuple[str, str | None, int | None]  # function, file, line


def located(report: Report, rows: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Return rows about calls, the first of them with where they were called from in their text."""
    lines = called_from(report, [row.id for row in rows[:_LOCATED] if row.id is not None])
    return tuple(
        replace(row, text=f"{row.text}, from {lines[row.id]}") if row.id in lines else row for row in rows
    )


def called_from(report: Report, calls: list[int]) -> dict[int, str]:
    """Return for calls (ids in `cuda_api`) where they come from, as `step (train.py:57)`.

    Those of which it is not known are left out.

    Meant for a few: each may look through the calls of Python around it.
    """
    if not calls:
        return {}
    rows = report.sql(
        f"""SELECT DISTINCT ON (a.id) a.id, a.thread, a."start", coalesce(a.stack, o.stack) AS stack
            FROM cuda_api a LEFT JOIN ops o ON a."range" = o."range" WHERE a.id IN ({", ".join(map(str, calls))}) ORDER BY a.id"""
    ).to_pylist()
    frames = FrameTable.of(report) if any(row["stack"] is not None for row in rows) else None
    source_lines = {}
    for row in rows:
        lines: list[_Line] = []
        if frames is not None and row["stack"] is not None:
            path = frames.path(int(frames.positions(pa.array([row["stack"]], pa.int64()))[0]))
            lines = [
                (frame.function, frame.file, frame.line or frame.first_line)
                for frame in reversed(path)
                if frame.kind == "python"
            ]
        if not lines and report.tables["python_calls"]:
            lines = _around(report, row["thread"], row["start"])
        if lines:
            source_lines[row["id"]] = _text(next((line for line in lines if _own(line[1])), lines[0]))
    return source_lines


def own_line(path: tuple[Frame, ...]) -> str:
    """Return the innermost line of the program itself in a stack, as `step (train.py:57)`.

    Empty where it has none.
    """
    for frame in reversed(path):
        file = (frame.file or "").replace("\\", "/")
        if frame.kind == "python" and _own(file or None):
            return _text((frame.function, file, frame.line or frame.first_line))
    return ""


def _around(report: Report, thread: int, time: int) -> list[_Line]:
    rows = report.sql(
        f"""SELECT name, file, line FROM python_calls WHERE thread = {thread} AND "start" <= {time} AND "end" > {time} AND kind = 'function'
            ORDER BY depth DESC"""
    ).to_pylist()
    return [(row["name"], row["file"], row["line"]) for row in rows]


def _own(file: str | None) -> bool:
    return file is not None and not is_library(file)


def _text(line: _Line) -> str:
    function, file, number = line
    if file is None:
        return function
    return f"{function} ({file.rpartition('/')[2]}{'' if number is None else f':{number}'})"
