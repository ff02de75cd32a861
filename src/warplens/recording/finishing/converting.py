"""Starts and stops the child that writes the report while the program runs.

It starts when there is enough to write.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from warplens.handover.priority import all_come_back
from warplens.recording.agent.control_file import CHUNK_END

MODULE = "warplens.cli.convert_child"
_SHORT_NS = 2_000_000_000  # what has ended by then is written at the end, in no time
_LEAST = 8 << 20  # bytes of all spools together


class Converting:
    """Belongs to the recording with the given note and spool.

    `look` now and then, from one thread; then `over`, then `finish`.

    `quiet`: nobody wants to hear about the report.
    """

    def __init__(self, note: Path, spool: Path, *, quiet: bool = False) -> None:
        self._note, self._spool, self._quiet = note, spool, quiet
        self._begun_ns = time.monotonic_ns()
        self._tried = False
        self._pid = 0
        self._control = self._answer = -1

    def look(self, aside: Callable[[], AbstractContextManager[Callable[[int], None]]]) -> None:
        """Start the child once it is worth it. Never raises OSError.

        `aside` is entered while the child is started, and is given its pid: nobody else may wait for it.
        """
        if not self._tried and time.monotonic_ns() - self._begun_ns > _SHORT_NS and self._is_worth_it():
            self._tried = True
            with suppress(OSError):
                self._start(aside)

    @property
    def is_on(self) -> bool:
        """Whether the child is writing the report."""
        return bool(self._pid)

    def over(self) -> None:
        """Tell the child that everything is recorded, and that it need not come last any more.

        Never raises OSError.
        """
        if self._pid:
            try:
                os.write(self._control, b".")
                all_come_back(self._pid)
            except OSError:
                self._pid = 0  # it has ended: all is as if it had never been

    def finish(self, progress: Callable[[str, float], None]) -> list[str] | None:
        """Wait until the child has finished the report.

        Return its lines about it, None if it could not. Also in a fork of the launcher.

        `progress` hears a stage and how far it is. Ctrl-C ends the child; then, nothing is finished yet.
        """
        if self._pid == 0:
            return None
        answer: dict[str, Any] = {}
        try:
            with os.fdopen(os.dup(self._answer), "rb") as lines:
                for line in lines:
                    with suppress(ValueError):
                        answer = json.loads(line)
                        if "stage" in answer:
                            progress(answer["stage"], answer["done"])
        except KeyboardInterrupt:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
            raise
        said: list[str] | None = answer.get("said")
        return said

    def _is_worth_it(self) -> bool:
        try:
            with os.scandir(self._spool) as entries:
                files = (entry for entry in entries if entry.name.endswith(".spool"))
                return any(total >= _LEAST for total in accumulate(map(_written, files)))
        except OSError:
            return False

    def _start(self, aside: Callable[[], AbstractContextManager[Callable[[int], None]]]) -> None:
        from warplens.recording.finishing.finisher import (
            Finisher,
        )  # takes a while to load, and short recordings never need it

        told, self._control = os.pipe()
        self._answer, answers = os.pipe()
        try:
            with aside() as adopt:
                request = {
                    "note": str(self._note),
                    "control": told,
                    "answer": answers,
                    "begun_ns": self._begun_ns,
                    "quiet": self._quiet,
                }
                child = Finisher(request, None, module=MODULE, passed=(told, answers))
                adopt(child.pid)
                self._pid = child.pid
        finally:
            os.close(told)
            os.close(answers)


def _written(entry: os.DirEntry[str]) -> int:
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        (end,) = struct.unpack("<Q", os.pread(descriptor, 8, CHUNK_END).ljust(8, b"\0"))
        return int(end)
    finally:
        os.close(descriptor)
