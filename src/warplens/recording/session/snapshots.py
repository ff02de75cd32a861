"""Writes snapshots of a report during its recording: one at a time, in child processes.

So nothing heavy runs in the launcher.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warplens.recording.finishing.finisher import Finisher

Answer = dict[str, Any]
MODULE = "warplens.cli.snapshot_child"
_WORDLESS = {"finished": False, "lines": []}


class Snapshots:
    """`ask` for one, `look` now and then. All from one thread, but for `cancel`.

    `aside` is entered while a child is started, and is given its pid: nobody else may wait for that child.
    """

    def __init__(
        self, note: Path, aside: Callable[[], AbstractContextManager[Callable[[int], None]]]
    ) -> None:
        self._note = note
        self._aside = aside
        self._child: Finisher | None = None
        self._now: list[Callable[[Answer], None]] = []
        self._next: list[Callable[[Answer], None]] = []
        self._cancelled = False

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._child is not None

    def ask(self, done: Callable[[Answer], None]) -> None:
        """Start a snapshot of all that is recorded by now, then call `done` with its child's answer."""
        self._next.append(done)
        self.look()

    def look(self) -> None:
        """Pass on finished snapshots, and begin requested ones."""
        if self._child is not None and self._child.done():
            child, waiting = self._child, self._now
            self._child, self._now = None, []
            answer = child.wait() or {**_WORDLESS, "said": [f"The snapshot was not written: {child.died}."]}
            for done in waiting:
                done(answer)
        if self._child is None and self._next and not self._cancelled:
            self._now, self._next = self._next, []
            self._start()

    def cancel(self) -> list[Callable[[Answer], None]]:
        """End it, because the report itself is about to be written; return who still waits."""
        self._cancelled = True
        if self._child is not None:
            self._child.kill()
            self._child = None
        waiting = self._now + self._next
        self._now, self._next = [], []
        return waiting

    def _start(self) -> None:
        from warplens.recording.finishing.finisher import (
            Finisher,
        )  # takes a while to load, and most recordings never need it

        try:
            with self._aside() as adopt:
                self._child = Finisher({"note": str(self._note)}, None, module=MODULE)
                adopt(self._child.pid)
        except OSError as error:
            waiting, self._now = self._now, []
            for done in waiting:
                done({**_WORDLESS, "said": [f"The snapshot cannot be written: {error.strerror or error}."]})
