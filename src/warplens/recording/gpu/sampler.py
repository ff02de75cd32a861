"""Samples the GPUs of this host during a recording.

A thread of the launcher, a file in the spool directory.
"""

from __future__ import annotations

import _thread
import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from warplens.recording.gpu.nvml import LIBRARY, Gpu, Nvml, NvmlError
from warplens.recording.gpu.readings import Readings
from warplens.recording.options.gpu import GpuMetrics
from warplens.recording.sample_file import SampleFile

FILE = "gpu_metrics.jsonl"
_PATIENCE_S = 1.0
_NONE_FOUND = "No GPU found, or none that this user may access."


class GpuSampler:
    """Samples from `start` to `stop`, while `recording` says so.

    Nothing is raised: what goes wrong is in `problem`.

    `charge` and `is_wanted` are those of `SampleFile`.

    Each line of the file is JSON: the first says what is sampled, `{"gpus": [{"gpu", "uuid", "name"}], "metrics": [[name, unit]]}`,
    the others are readings, `[ns of CLOCK_MONOTONIC, gpu, [value or null, …]]`.
    """

    def __init__(
        self,
        spool: Path,
        options: GpuMetrics,
        recording: Callable[[], bool],
        library: str = LIBRARY,
        *,
        charge: Callable[[int], bool] = lambda count: True,
        is_wanted: Callable[[int], bool] | None = None,
    ) -> None:
        self.problem: tuple[str, str] | None = None  # severity, message
        self.missed = 0
        self._path = spool / FILE
        self._options = options
        self._recording = recording
        self._library = library
        self._charge = charge
        self._is_wanted = is_wanted
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._began = False

    def start(self) -> None:
        """Start the thread."""
        try:
            _thread.start_new_thread(self._run, ())
            self._began = True
        except RuntimeError:
            self.problem = "warning", "GPU metrics were not sampled: the launcher can start no thread."

    def stop(self) -> None:
        """End the thread; a driver that does not answer is waited for a second."""
        self._stop.set()
        if self._began and not self._ended.wait(_PATIENCE_S) and self.problem is None:
            self.problem = "info", "GPU metrics may end early: the driver did not answer."

    def _run(self) -> None:
        try:
            nvml = Nvml(self._library)
            try:
                self._sample(nvml)
            finally:
                nvml.close()
        except NvmlError as error:
            if self._options.chosen:
                self.problem = "warning", f"GPU metrics were not sampled: {error}."
        except OSError as error:
            self.problem = "warning", f"GPU metrics could not be written to {self._path}: {error.strerror}."
        finally:
            self._ended.set()

    def _sample(self, nvml: Nvml) -> None:
        gpus = _chosen(nvml.gpus(), self._options.devices)
        if not gpus:
            if self._options.chosen:
                text = (
                    _NONE_FOUND
                    if not self._options.devices
                    else f"No GPU has the numbers {list(self._options.devices)}."
                )
                self.problem = "warning", f"GPU metrics were not sampled. {text}"
            return
        gpm = self._options.kind == "gpm"
        readings = [Readings(nvml, gpu, gpm=gpm) for gpu in gpus]
        without = [
            f"{reading.gpu.gpu} ({reading.gpu.name})" for reading in readings if gpm and not reading.has_gpm
        ]
        if without:
            self.problem = (
                "warning",
                f"GPM works on Hopper and later GPUs only: for GPU {', '.join(without)} the report "
                "only has NVML's metrics.",
            )
        head = {
            "gpus": [{"gpu": gpu.gpu, "uuid": gpu.uuid, "name": gpu.name} for gpu in gpus],
            "metrics": Readings.metrics(gpm=gpm),
        }
        self._loop(
            SampleFile(self._path, json.dumps(head), self._charge, is_wanted=self._is_wanted), readings, gpm
        )

    def _loop(self, file: SampleFile, readings: Sequence[Readings], gpm: bool) -> None:
        period = 1 / self._options.frequency
        due = time.monotonic()
        while True:
            if self._recording():
                self._read_all(file, readings, gpm)
            due, now = due + period, time.monotonic()
            if due < now:  # a slow driver gets its rest
                due = now + period
            if self._stop.wait(due - now):
                return

    def _read_all(self, file: SampleFile, readings: Sequence[Readings], gpm: bool) -> None:
        for reading in readings:
            begin = time.monotonic_ns()
            try:
                values = reading.read(gpm=gpm)
            except NvmlError:
                self.missed += 1
                continue
            line = json.dumps(
                [(begin + time.monotonic_ns()) // 2, reading.gpu.gpu, values], separators=(",", ":")
            )
            if not file.add(line):
                self.missed += 1


def _chosen(gpus: list[Gpu], devices: Sequence[int]) -> list[Gpu]:
    return [gpu for gpu in gpus if not devices or gpu.gpu in devices]
