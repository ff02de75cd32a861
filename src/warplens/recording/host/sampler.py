"""Samples the memory of the program's processes and the load of the machine.

A thread of the launcher, a file in the spool directory.
"""

from __future__ import annotations

import _thread
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from warplens.recording.sample_file import SampleFile

FILE = "host_metrics.jsonl"
_PERIOD_S = 0.25
_FIRST_S = 0.05  # short programs have a sample, too
_SPARING = 500  # a look at all processes takes at most 1/500 of a CPU
_PATIENCE_S = 1.0
_IDLE, _IO_WAIT, _GUEST = 3, 4, 8  # fields of the line `cpu` in /proc/stat; guest time is part of user time
_PAGE = os.sysconf("SC_PAGE_SIZE")


class HostSampler:
    """Samples from `start` to `stop`, while `recording` says so.

    Nothing is raised: `missed` samples are counted.

    `pids` gives the processes. `also_look` hears of them at each look, and returns the CPU seconds that its forks took: they are
    rare, and do not delay the next look. `charge` and `is_wanted` are those of `SampleFile`.

    Each line of the file is JSON: the first is `{"cpus": N}`, the others are readings, `[ns of CLOCK_MONOTONIC, % of the machine's CPUs
    that were busy since the reading before or null, [[pid, bytes], …]]`.
    """

    def __init__(
        self,
        spool: Path,
        pids: Callable[[], Sequence[int]],
        recording: Callable[[], bool],
        *,
        also_look: Callable[[Sequence[int]], float] = lambda pids: 0.0,
        charge: Callable[[int], bool] = lambda count: True,
        is_wanted: Callable[[int], bool] | None = None,
    ) -> None:
        self.missed = 0
        self._path = spool / FILE
        self._pids = pids
        self._also_look = also_look
        self._recording = recording
        self._charge = charge
        self._is_wanted = is_wanted
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._began = False
        self._ticks = (0, 0)

    def start(self) -> None:
        """Start the thread; without one nothing is sampled."""
        try:
            _thread.start_new_thread(self._run, ())
            self._began = True
        except RuntimeError:
            self.missed += 1

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._began:
            self._ended.wait(_PATIENCE_S)

    def _run(self) -> None:
        try:
            file = SampleFile(
                self._path, json.dumps({"cpus": os.cpu_count() or 1}), self._charge, is_wanted=self._is_wanted
            )
            self._load()
            wait, before = _FIRST_S, 0.0
            while not self._stop.wait(wait):
                begun = time.thread_time()
                pids = self._pids()
                begun += self._also_look(pids)
                if self._recording() and not file.add(json.dumps(self._reading(pids), separators=(",", ":"))):
                    self.missed += 1
                spent = time.thread_time() - begun
                # One slow look, as the first one is, does not delay the next.
                wait, before = max(_PERIOD_S, min(spent, before) * _SPARING), spent
        except OSError:
            self.missed += 1
        finally:
            self._ended.set()

    def _reading(self, pids: Sequence[int]) -> list[object]:
        sizes = [[pid, size] for pid in pids if (size := resident(pid)) is not None]
        return [time.monotonic_ns(), self._load(), sizes]

    def _load(self) -> float | None:
        """The busy share of the machine since the last call, in percent."""
        try:
            with open("/proc/stat", "rb") as file:
                fields = [int(word) for word in file.readline().split()[1:]]
        except (OSError, ValueError):
            return None
        idle = sum(fields[_IDLE : _IO_WAIT + 1])
        busy = sum(fields[:_GUEST]) - idle
        before, self._ticks = self._ticks, (busy, idle)
        spent = busy - before[0], idle - before[1]
        if not any(before) or sum(spent) <= 0:
            return None
        return round(100 * max(spent[0], 0) / sum(spent), 1)


def resident(pid: int) -> int | None:
    """Return the memory of a process that is resident, bytes.

    None if it is gone, or is a zombie.
    """
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE or None
    except (OSError, ValueError, IndexError):
        return None
