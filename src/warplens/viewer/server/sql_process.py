"""Answers SQL of the page, one query after another, in a limited process.

It has little memory, writes no file and has a time limit.

Each message is a length (8 bytes, little-endian), then that number of bytes: questions pickled by the server, answers `+` or `-` (it
was the last
one) and JSON. The server believes nothing that a process says in which somebody's SQL runs. The first message says that it has begun.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from warplens.errors import QueryError, WarplensError
from warplens.handover.priority import step_back
from warplens.report.limited import limited
from warplens.report.report import Report
from warplens.storage.available import available
from warplens.viewer import limits
from warplens.viewer.answers.plain import encoded
from warplens.viewer.answers.tables import places, shown, with_origin
from warplens.viewer.server.subprocess_worker import end_with

if TYPE_CHECKING:
    from warplens.report.store import Stored

_NICE = 5  # viewports come first
_LEAST = 256 << 20  # bytes
_WORN = 0.5  # of the memory that it may have: what took that much makes way for a new process


def room() -> int:
    """Return the bytes of memory that questions may take: a quarter of the free memory, up to a limit."""
    return min(limits.SQL_MEMORY, max(available() // 4, _LEAST))


class Asked:
    """Keeps reports open: each is opened once, with the options of the server."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._reports: dict[int, tuple[bytes, Report]] = {}

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one question, or what is wrong with it."""
        report = self._report(question["report"], question["stored"])
        try:
            rows, more = limited(report, question["text"], rows=limits.ROWS, size=limits.ANSWER)
            table = shown("SQL", with_origin(rows, report.origin), cut_=more)
            return {"table": table, "places": places(rows)}
        except WarplensError as error:
            return {"error": type(error).__name__, "text": str(error)}
        except (ValueError, RecursionError) as error:
            return {"error": QueryError.__name__, "text": f"not SQL: {str(error).splitlines()[0]}"}

    def _report(self, number: int, stored: bytes) -> Report:
        if number not in self._reports or self._reports[number][0] != stored:
            if number in self._reports:
                self._reports.pop(number)[1].close()
            report: Stored = pickle.loads(stored)
            self._reports[number] = stored, Report(report, memory=self._memory, spill=False)
        return self._reports[number][1]


def _encoded(answer: dict[str, Any]) -> bytes:
    """Return the answer as JSON, without the last rows where it would be too long."""
    message = encoded(answer)
    return message if len(message) <= limits.ANSWER else encoded(_cut(answer))


def _cut(answer: dict[str, Any]) -> dict[str, Any]:
    table = answer["table"]
    kept, size = [], 0
    for row in table["rows"]:
        size += len(encoded(row)) + 1
        if size > limits.ANSWER:
            break
        kept.append(row)
    return {"table": {**table, "rows": kept, "cut": True}, "places": answer["places"][: len(kept)]}


def _address_space() -> int:
    """Return the bytes of address space that this process has now.

    0 if the system does not say.
    """
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    return 0


def _confine(memory: int) -> None:
    """Limit memory to a given amount beyond the present, forbid files and core dumps."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if taken := _address_space():
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            most = taken + memory if hard == resource.RLIM_INFINITY else min(taken + memory, hard)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _read(stream: BinaryIO) -> bytes:
    """Return the next message; nothing if there is none."""
    return stream.read(int.from_bytes(stream.read(8), "little"))


def _write(stream: BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(8, "little") + message)
    stream.flush()


def main() -> None:
    """Answer until the server is gone."""
    warnings.simplefilter("ignore")
    step_back(_NICE, first_to_go=True)
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    if os.name == "posix":
        threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    memory = room()
    asked, begun = Asked(memory // 2), 0
    _write(answers, b"+")
    while message := _read(questions):
        question = pickle.loads(message)
        if not begun:
            asked.answer(
                {**question, "text": "SELECT 1"}
            )  # threads and what else there is once are no part of a question
            begun = _address_space()
            _confine(memory)
        try:
            answer = _encoded(asked.answer(question))
            last = _address_space() - begun > memory * _WORN
        except MemoryError:
            answer, last = b"", True
        _write(answers, (b"-" if last else b"+") + answer)


if __name__ == "__main__":
    main()
