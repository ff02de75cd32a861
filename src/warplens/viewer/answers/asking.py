"""Runs the page's SQL in separate processes with a time limit.

So it takes neither the server's memory nor its threads.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warplens import errors
from warplens.viewer import limits
from warplens.viewer.answers import elsewhere

if TYPE_CHECKING:
    from warplens.viewer.answers.loaded_report import Opened

_MODULE = "warplens.viewer.server.sql_process"
_ERRORS = ("MissingData", "QueryError", "ReportError")
_BEGIN_S = 60.0
_MORE = 1 << 20  # bytes of an answer beside its table
_BESIDE = "ask about less time, or add LIMIT and WHERE"


class SqlProcesses:
    """Processes that answer SQL.

    Each is kept for the next question, as one takes most of a second to begin.
    """

    def __init__(self, most: int = limits.SQL_AT_ONCE) -> None:
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._free: list[_Process] = []
        self._running: set[_Process] = set()
        self._closed = False

    def ask(self, opened: Opened, text: str) -> dict[str, Any]:
        """Return `table` and `places` of the answer to one SELECT.

        Raises QueryError, MissingData, ReportError.
        """
        stored = pickle.dumps(replace(opened.report.stored, held=(), _checked={}))
        question = pickle.dumps({"report": opened.number, "stored": stored, "text": text})
        with self._places:
            answer = json.loads(self._answer(question))
        if "error" in answer:
            kind = answer["error"] if answer["error"] in _ERRORS else "QueryError"
            raise getattr(errors, kind)(answer["text"])
        reply: dict[str, Any] = answer
        return reply

    def _answer(self, question: bytes) -> bytes:
        process = self._taken()
        try:
            answer = process.answer(question, limits.SQL_S) if process.begun() else None
        finally:
            self._return(process)
        if answer:
            return answer
        if self._closed:
            raise errors.QueryError("the server is shutting down")
        if process.late:
            raise errors.QueryError(f"the query took longer than {limits.SQL_S:g} s: {_BESIDE}")
        raise errors.QueryError(f"the query needs more memory than one query may use: {_BESIDE}")

    def _taken(self) -> _Process:
        with self._lock:
            if self._closed:
                raise errors.QueryError("the server is shutting down")
            while self._free:
                process = self._free.pop()
                if process.alive:
                    return process
                self._running.discard(process)
                process.end()
            process = _Process()
            self._running.add(process)
            return process

    def _return(self, process: _Process) -> None:
        with self._lock:
            if process.fresh and not self._closed:
                self._free.append(process)
                return
            self._running.discard(process)
        process.end()

    def close(self) -> None:
        """End all of them, and begin no more."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()  # who waits for its answer then ends it
            free, self._free = self._free, []
            self._running.difference_update(free)
        for process in free:
            process.end()


class _Process:
    """One process.

    `fresh`: it may answer the next question, too; `late`: it was ended because it took too long.
    """

    def __init__(self) -> None:
        self._child = elsewhere.start(_MODULE)
        self._ready = self.late = False
        self.fresh = True

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def begun(self) -> bool:
        """Wait until it can be asked; False if it does not come to that."""
        self._ready = self._ready or self.answer(None, _BEGIN_S) is not None
        return self._ready

    def answer(self, question: bytes | None, seconds: float) -> bytes | None:
        """Return what it says to a question.

        None, and it has to be ended, where it says nothing for so long, or more than it may.
        """
        timer = threading.Timer(seconds, self._end_late)
        timer.daemon = True
        timer.start()
        try:
            answer = self._said(question)
        except OSError:
            answer = None
        finally:
            timer.cancel()
            timer.join()  # it must not end who answers the next question
        self.fresh = answer is not None and answer[:1] == b"+" and not self.late
        return None if answer is None else answer[1:]

    def _said(self, question: bytes | None) -> bytes | None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        if question is not None:
            self._child.stdin.write(len(question).to_bytes(8, "little") + question)
            self._child.stdin.flush()
        head = self._child.stdout.read(8)
        size = int.from_bytes(head, "little") if len(head) == 8 else -1
        if not 0 < size <= limits.ANSWER + _MORE:
            return None
        answer = self._child.stdout.read(size)
        return answer if len(answer) == size else None

    def _end_late(self) -> None:
        self.late = True
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    def end(self) -> None:
        """End it, and leave nothing of it behind."""
        self.kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not sent yet
                    stream.close()
        self._child.wait()
