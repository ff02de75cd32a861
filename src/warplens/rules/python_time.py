"""Shared by rules about the CPU: the sampled Python threads of the selection, and their code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.cpu.own_code import OwnCode
from warplens.analysis.cpu.thread_time import ThreadTime, own_code, thread_times
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report import Report, Selection


def python_time(report: Report, selection: Selection) -> tuple[OwnCode, tuple[ThreadTime, ...]]:
    """Return whose code stacks were in, and the threads, those that were seen longest first.

    MissingData if no Python was sampled.
    """
    threads = thread_times(report, window=selection.window(report))
    if not threads:
        raise MissingData(f"does not contain samples of Python{selection.place(report)}.")
    return own_code(report), threads


def called(function: str, file: str) -> str:
    """Return a function with its file, in words that are the same in the next recording."""
    return f"{function} ({file.replace(chr(92), '/').rsplit('/', 1)[-1]})" if file else function
