"""Heavy questions about large reports, in a process of their own: it gives its memory back, can be ended, and delays no viewport.

python -m warpline.viewer.apart    reads one question from stdin as JSON, writes the answer to stdout
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline import errors
from warpline.viewer.plain import encoded

if TYPE_CHECKING:
    from warpline.viewer.opened import Opened

LARGE = 2_000_000  # events: below, it is computed faster than a process starts
_MOST_S = 1_800.0
_NICE = 15  # a thirtieth of a core that others want, too
_ERRORS = ("UsageError", "MissingData", "QueryError", "ReportError")
_METHODS = frozenset(("findings", "steps", "stat", "flame"))
_PROJECT = "project"


class Apart:
    """Asks in other processes; `close` ends those that still run."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def wanted(self, opened: Opened, method: str) -> bool:
        """Whether a question is better asked in another process."""
        return method in _METHODS and sum(lane.events for lane in opened.lanes.all) > LARGE

    def ask(self, opened: Opened, method: str, *arguments: Any) -> Any:
        """Return what `Answers.METHOD(report, *arguments)` returns. Raises what that raises, QueryError where it takes too long."""
        return self._ask(opened, method, arguments)

    def project(self, opened: Opened) -> None:
        """Index the NVTX ranges on the GPU, which takes 120 bytes of memory for each event of a process. Raises QueryError."""
        try:
            self._ask(opened, _PROJECT, ())
        except errors.QueryError:
            if not self._closed:
                raise

    def _ask(self, opened: Opened, method: str, arguments: Sequence[Any]) -> Any:
        cache = None if opened.cache is None else str(opened.cache)
        place = {"report": str(opened.report.path.resolve()), "number": opened.number, "cache": cache}
        question = {**place, "method": method, "arguments": arguments}
        with self._lock:
            if self._closed:
                raise errors.QueryError("the server is being ended")
            child = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
            self._running.add(child)
        try:
            output, _ = child.communicate(json.dumps(question).encode(), _MOST_S)
        except subprocess.TimeoutExpired:
            raise errors.QueryError(f"this took longer than {_MOST_S / 60:.0f} minutes: ask about a part of time") from None
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
        raise errors.QueryError("the question ended without an answer: there may be too little memory for it") from None
    if "error" in answer:
        raise getattr(errors, answer["error"])(answer["text"])
    return answer["answer"]


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    from warpline.query.report import Report
    from warpline.viewer import projecting
    from warpline.viewer.answers import Answers, View
    from warpline.viewer.opened import Opened

    number, cache = question["number"], question["cache"]
    try:
        with Report.open(question["report"]) as report:
            place = None if cache is None else Path(cache)
            if question["method"] == _PROJECT:
                return {"answer": projecting.made(report, place) is not None}
            opened = Opened(number, report, cache=place, projecting=False)
            answers = Answers(View(report.name, [opened] * (number + 1)))
            return {"answer": getattr(answers, question["method"])(number, *question["arguments"])}
    except errors.WarplineError as error:
        kind = next((name for name in _ERRORS if isinstance(error, getattr(errors, name))), "QueryError")
        return {"error": kind, "text": str(error)}


def _yield_to_the_page() -> None:
    """Compute beside the server and the browser, not before them: whoever opened the page is looking around meanwhile."""
    if hasattr(os, "sched_setscheduler"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if hasattr(os, "nice"):
        os.nice(_NICE)


def main() -> None:
    """Answer one question."""
    warnings.simplefilter("ignore")
    _yield_to_the_page()
    question = json.load(sys.stdin)
    if question["method"] not in (*_METHODS, _PROJECT):
        raise SystemExit(2)
    sys.stdout.buffer.write(encoded(_answer(question)))


if __name__ == "__main__":
    main()
