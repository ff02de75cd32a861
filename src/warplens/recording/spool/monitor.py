"""Watches the spool on the recorder's thread: a line of clocks a second, and the spool files."""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from warplens.recording.agent.library import Agent, ClockSample
from warplens.recording.clock_log import ClockLog
from warplens.recording.spool.holder import SpoolKeeper

LOOK_S = 0.25
LOOKS_PER_LINE = 4
_GONE_S = 1.0


class Monitor:
    """Runs from `start` to `stop`.

    Its thread is none of `threading`'s, because it may run inside a program that counts, traces or profiles those.
    """

    def __init__(
        self, spool: Path, agent: Agent, keeper: SpoolKeeper, also_look: Callable[[], None] | None = None
    ) -> None:
        self._also_look = also_look
        self._log = ClockLog(spool / "clocks.jsonl")
        self._agent = agent
        self._keeper = keeper
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._tid = 0

    @property
    def missed_lines(self) -> int:
        """The number of lines lost to a full disk."""
        return self._log.missed

    def start(self, early: ClockSample) -> None:
        """Write the first lines, `early` and now, and start the thread."""
        self._log.add(early)
        self._log.add(self._agent.clock_sample())
        self.resume()

    def stop(self) -> None:
        """Write a last line, look a last time, and end the thread."""
        self.pause()
        self._keeper.look()
        self._log.write_again()
        self._log.add(self._agent.clock_sample())

    def pause(self) -> None:
        """End the thread, and wait until the system has removed it.

        Python 3.12 warns programs that fork with threads.
        """
        if not self._tid:
            return
        self._stop.set()
        self._ended.wait()
        end = time.monotonic() + _GONE_S
        while os.path.exists(f"/proc/self/task/{self._tid}") and time.monotonic() < end:
            time.sleep(0)
        self._tid = 0

    def resume(self) -> None:
        """Start the thread (again), unless it runs."""
        if self._tid:
            return
        self._stop.clear()
        self._ended.clear()
        begun = threading.Event()
        try:
            _thread.start_new_thread(self._run, (begun,))
        except RuntimeError:  # no more threads, or the interpreter ends: the clocks are read at the end
            return
        begun.wait()

    def _run(self, begun: threading.Event) -> None:
        self._tid = threading.get_native_id()
        begun.set()
        looks = 0
        try:
            while not self._stop.wait(LOOK_S):
                self._keeper.look()
                if self._also_look is not None:
                    self._also_look()
                looks += 1
                if looks % LOOKS_PER_LINE == 0:
                    self._log.add(self._agent.clock_sample())
        finally:
            self._ended.set()
