"""The launcher's thread: a line of clocks a second, and an eye on the spool files."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from warpline.capture.agent import Agent, ClockSample
from warpline.capture.keeper import SpoolKeeper

LOOK_S = 0.25
LOOKS_PER_LINE = 4


class Monitor:
    """Runs from `start` to `stop`; a full disk costs lines, counted in `missed_lines`."""

    def __init__(self, spool: Path, agent: Agent, keeper: SpoolKeeper) -> None:
        self.missed_lines = 0
        self._path = spool / "clocks.jsonl"
        self._agent = agent
        self._keeper = keeper
        self._lines: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warpline-monitor", daemon=True)

    def start(self, early: ClockSample) -> None:
        """Write the first lines, `early` and now, and start the thread."""
        self._write(early)
        self._write(self._agent.clock_sample())
        self._thread.start()

    def stop(self) -> None:
        """Write a last line, look a last time, and end the thread."""
        self._stop.set()
        self._thread.join()
        self._keeper.look()
        self._write(self._agent.clock_sample())
        if not self._path.exists() and self._lines:  # deleted with its directory: the lines are still known
            self._append("".join(self._lines))

    def _run(self) -> None:
        looks = 0
        while not self._stop.wait(LOOK_S):
            self._keeper.look()
            looks += 1
            if looks % LOOKS_PER_LINE == 0:
                self._write(self._agent.clock_sample())

    def _write(self, sample: ClockSample) -> None:
        line = json.dumps({"counter": sample.counter, "monotonic": sample.monotonic, "realtime": sample.realtime}) + "\n"
        if len(self._lines) < 100_000:
            self._lines.append(line)
        if not self._append(line):
            self.missed_lines += 1

    def _append(self, text: str) -> bool:
        try:
            with self._path.open("a", encoding="ascii") as file:
                file.write(text)
        except OSError:
            return False
        return True
