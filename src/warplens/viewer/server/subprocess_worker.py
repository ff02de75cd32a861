"""Runs heavy requests about large reports in a separate process.

It gives its memory back, can be ended, and delays no viewport.

python -m warplens.viewer.server.subprocess_worker    reads one question from stdin as JSON, writes the answer to stdout
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens import errors
from warplens.handover.priority import step_back
from warplens.storage.manifest import is_large
from warplens.viewer.answers import elsewhere
from warplens.viewer.answers.plain import encoded
from warplens.viewer.answers.projecting import LAYER

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.viewer.answers.answers import View
    from warplens.viewer.answers.loaded_report import Opened

_MOST_S = 1_800.0
_LOOK_S = 1.0
_NICE = 15  # a thirtieth of a core that others want, too
_ERRORS = ("UsageError", "MissingData", "QueryError", "ReportError")
_METHODS = frozenset(("findings", "steps", "stat", "flame", "source", "alike"))
_PROJECT, _DIFFERENCE = "project", "difference"


class SubprocessWorker:
    """Asks in other processes; `close` ends those that still run."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def wanted(self, opened: Opened, method: str, *arguments: Any) -> bool:
        """Whether another process should answer a question.

        Not about rows that only this one has computed.
        """
        return (
            method in _METHODS
            and not (method == "alike" and arguments[0] == LAYER)
            and is_large(_events(opened))
        )

    def ask(self, opened: Opened, method: str, *arguments: Any) -> Any:
        """Return what `Answers.METHOD(report, *arguments)` returns.

        Raises what that raises, QueryError where it takes too long.
        """
        return self._ask([opened], method, arguments)

    def difference(self, view: View) -> Any:
        """Return how two reports differ: of large ones, from another process.

        Raises what `View.compare` raises, and QueryError.
        """
        compare = view.compare
        if compare is None or not is_large(sum(map(_events, view.reports))):
            return None if compare is None else compare(view.reports)
        return self._ask(view.reports, _DIFFERENCE, (compare.__module__, compare.__qualname__))

    def project(self, opened: Opened) -> None:
        """Index the NVTX ranges on the GPU.

        Takes 120 bytes of memory for each event of a process. Raises QueryError.
        """
        try:
            self._ask([opened], _PROJECT, ())
        except errors.QueryError:
            if not self._closed:
                raise

    def _ask(self, reports: Sequence[Opened], method: str, arguments: Sequence[Any]) -> Any:
        question = {
            "server": os.getpid(),
            "reports": [_place(opened) for opened in reports],
            "method": method,
            "arguments": arguments,
        }
        with self._lock:
            if self._closed:
                raise errors.QueryError("the server is shutting down")
            child = elsewhere.start(__name__)
            self._running.add(child)
        try:
            output, _ = child.communicate(json.dumps(question).encode(), _MOST_S)
        except subprocess.TimeoutExpired:
            raise errors.QueryError(
                f"this took longer than {_MOST_S / 60:.0f} minutes: select a part of the time"
            ) from None
        finally:
            child.kill()
            child.wait()
            with self._lock:
                self._running.discard(child)
        return _read(output)

    def close(self) -> None:
        """End what still runs, and begin nothing more."""
        with self._lock:
            self._closed = True
            for child in self._running:
                child.kill()


def _read(output: bytes) -> Any:
    try:
        answer = json.loads(output)
    except ValueError:
        raise errors.QueryError("the request ended without an answer: memory may be short") from None
    if "error" in answer:
        raise getattr(errors, answer["error"])(answer["text"])
    return answer["answer"]


def _events(opened: Opened) -> int:
    return sum(lane.events for lane in opened.lanes.all)


def _place(opened: Opened) -> dict[str, Any]:
    cache = None if opened.cache is None else str(opened.cache)
    return {"path": str(opened.report.path.resolve()), "number": opened.number, "cache": cache}


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    from warplens.report.report import Report

    try:
        with contextlib.ExitStack() as stack:
            reports = [stack.enter_context(Report.open(place["path"])) for place in question["reports"]]
            return {"answer": _answered(question, reports)}
    except errors.WarplensError as error:
        kind = next((name for name in _ERRORS if isinstance(error, getattr(errors, name))), "QueryError")
        return {"error": kind, "text": str(error)}


def _answered(question: dict[str, Any], reports: Sequence[Report]) -> Any:
    from warplens.viewer.answers import projecting
    from warplens.viewer.answers.answers import Answers, View
    from warplens.viewer.answers.loaded_report import Opened

    method, arguments = question["method"], question["arguments"]
    caches = [None if place["cache"] is None else Path(place["cache"]) for place in question["reports"]]
    if method == _PROJECT:
        return projecting.made(reports[0], caches[0]) is not None
    numbers = [place["number"] for place in question["reports"]]
    sides = [
        Opened(number, report, cache=cache, projecting=False)
        for number, report, cache in zip(numbers, reports, caches, strict=True)
    ]
    if method == _DIFFERENCE:
        module, name = arguments
        return getattr(importlib.import_module(module), name)(sides)
    answers = Answers(View(reports[0].name, [sides[0]] * (numbers[0] + 1)))
    return getattr(answers, method)(numbers[0], *arguments)


def end_with(server: int) -> None:
    """Exit when the server dies. A killed server cannot stop its workers."""
    while os.getppid() == server:
        time.sleep(_LOOK_S)
    os._exit(1)


def main() -> None:
    """Answer one question."""
    warnings.simplefilter("ignore")
    step_back(_NICE, batch=True)  # the user of the page is looking around meanwhile
    question = json.load(sys.stdin)
    if question["method"] not in (*_METHODS, _PROJECT, _DIFFERENCE):
        raise SystemExit(2)
    if os.name == "posix":
        threading.Thread(target=end_with, args=(question["server"],), daemon=True).start()
    sys.stdout.buffer.write(encoded(_answer(question)))


if __name__ == "__main__":
    main()
