"""Shared by rules about the CPU: the threads of Python that were sampled in the selection, and whose code they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from warplens.analysis.cpu.own_code import OwnCode
from warplens.analysis.cpu.thread_time import ThreadTime, own_code, read_samples, thread_times
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_known: WeakKeyDictionary[Report, dict[Selection, tuple[ThreadTime, ...]]] = WeakKeyDictionary()


def python_time(report: Report, selection: Selection) -> tuple[OwnCode, tuple[ThreadTime, ...]]:
    """Return whose code stacks were in, and the threads, those that were seen longest first. MissingData where no Python was sampled."""
    of_report = _known.setdefault(report, {})
    if selection not in of_report:
        samples = read_samples(report) if report.tables["samples"] else None
        window = selection.window(report)
        of_report[selection] = () if samples is None else tuple(thread_times(report, samples, window))
    if not of_report[selection]:
        raise MissingData(f"does not contain samples of Python{selection.place(report)}.")
    return own_code(report), of_report[selection]


def called(function: str, file: str) -> str:
    """Return a function with its file, in words that are the same in the next recording."""
    return f"{function} ({file.replace(chr(92), '/').rsplit('/', 1)[-1]})" if file else function
