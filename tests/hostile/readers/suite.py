"""Plays rounds in workers that may die: what a worker was at when it ended without a word is what failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.hostile.readers.rounds import KINDS
from tests.support.programs.launching import SRC

ROOT = Path(__file__).resolve().parents[3]
MEMORY = 2 << 30  # bytes that reading may take
ROUND_S = 120.0  # what takes longer hangs


@dataclass
class Suite:
    """The rounds of one seed. `tell` hears of each failure."""

    seed: int
    folder: Path
    kinds: list[str] = field(default_factory=lambda: list(KINDS))
    tell: Callable[[str], None] = lambda _: None
    failures: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def run(self, numbers: Iterable[int], seconds: float, jobs: int) -> None:
        """Play rounds until all are played, or the time is over."""
        self._numbers, self._end = iter(numbers), time.monotonic() + seconds
        self._lock = threading.Lock()
        threads = [threading.Thread(target=self._work, args=(job,)) for job in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _next(self) -> int | None:
        with self._lock:
            return None if time.monotonic() > self._end else next(self._numbers, None)

    def _work(self, job: int) -> None:
        tries = 0
        while (number := self._next()) is not None:
            tries += 1
            folder = self.folder / f"{job}-{tries}"
            folder.mkdir()
            with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
                if not self._worker(folder, number, said):
                    return

    def _worker(self, folder: Path, number: int | None, said: IO[str]) -> bool:
        """Play rounds in one worker; True where it died, so that another one goes on."""
        words = [
            sys.executable,
            "-m",
            "tests.hostile.readers.worker",
            str(self.seed),
            ",".join(self.kinds),
            str(folder),
        ]
        environment = os.environ | {"PYTHONPATH": f"{SRC}{os.pathsep}{ROOT}"}
        with subprocess.Popen(
            [*words, str(MEMORY), str(ROUND_S)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            try:
                if not worker.stdout.readline():
                    raise OSError
                while number is not None:
                    worker.stdin.write(f"{number}\n")
                    worker.stdin.flush()
                    begin, end = (
                        json.loads(worker.stdout.readline() or "{}"),
                        json.loads(worker.stdout.readline() or "{}"),
                    )
                    if not end:
                        self._failed(
                            number, begin.get("kind", "?"), folder, f"the process ended with {worker.wait()}"
                        )
                        return True
                    self.done[end["kind"]] += 1
                    if end["wrong"]:
                        self._failed(number, end["kind"], folder, end["wrong"])
                    number = self._next()
            except OSError:
                self._failed(number, "?", folder, f"the process did not begin, or ended with {worker.poll()}")
            finally:
                worker.stdin.close()
                worker.wait()
                said.seek(0)
                if worker.returncode:
                    self.tell(said.read()[-20_000:])
        return False

    def _failed(self, number: int | None, kind: str, folder: Path, what: str) -> None:
        with self._lock:
            self.failures.append(f"round {number}: {kind}, in {folder / str(number)}\n{what}")
        self.tell(f"FAILED {self.failures[-1]}\nagain: --readers --seed {self.seed} --only {number}")
