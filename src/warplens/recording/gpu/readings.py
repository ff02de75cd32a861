"""Reads each GPU: NVML's figures, and with GPM the activity of its parts between two readings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from warplens.recording.gpu.nvml import NOT_SUPPORTED, Gpu, Nvml, NvmlError

Value = float | None
_MIB = float(1 << 20)

THROTTLE = "throttle reasons"  # bits; the reader makes metrics of them
_PLAIN = (
    ("GPU Utilization", "%"),
    ("Memory Utilization", "%"),
    ("Memory Used", "bytes"),
    ("Power", "W"),
    ("SM Clock", "MHz"),
    ("Memory Clock", "MHz"),
    ("Temperature", "C"),
    (THROTTLE, ""),
)
# NVML's number, name, unit, and what its figure is to be multiplied by.
_GPM = (
    (1, "GPU Active", "%", 1.0),
    (2, "SM Active", "%", 1.0),
    (3, "SM Occupancy", "%", 1.0),
    (5, "Tensor Active", "%", 1.0),
    (11, "FP64 Active", "%", 1.0),
    (12, "FP32 Active", "%", 1.0),
    (13, "FP16 Active", "%", 1.0),
    (4, "Integer Active", "%", 1.0),
    (10, "DRAM Bandwidth", "%", 1.0),
    (21, "PCIe Received", "bytes/s", _MIB),
    (20, "PCIe Sent", "bytes/s", _MIB),
    (60, "NVLink Received", "bytes/s", _MIB),
    (61, "NVLink Sent", "bytes/s", _MIB),
)
_GPM_NUMBERS = [number for number, *_ in _GPM]


class Readings:
    """Reads one GPU again and again.

    What it does not know is None in each reading, and not asked for again.
    """

    def __init__(self, nvml: Nvml, gpu: Gpu, *, gpm: bool) -> None:
        self.gpu = gpu
        self._nvml = nvml
        self._asked: list[tuple[int, Callable[[], Sequence[Value]] | None]] = [
            (2, lambda: nvml.utilization(gpu)),
            (1, lambda: (nvml.memory_used(gpu),)),
            (1, lambda: (nvml.power(gpu),)),
            (1, lambda: (nvml.clock(gpu, 1),)),
            (1, lambda: (nvml.clock(gpu, 2),)),
            (1, lambda: (nvml.temperature(gpu),)),
            (1, lambda: (nvml.throttle_reasons(gpu),)),
        ]
        self._samples: list[ctypes.c_void_p] = []
        self._read = 0
        self.has_gpm = gpm and nvml.has_gpm(gpu)
        if self.has_gpm:
            self._samples = [nvml.gpm_sample(), nvml.gpm_sample()]

    @staticmethod
    def metrics(*, gpm: bool) -> list[tuple[str, str]]:
        """Return names and units of the values of each reading."""
        return [*_PLAIN, *((name, unit) for _, name, unit, _ in _GPM)] if gpm else list(_PLAIN)

    def read(self, *, gpm: bool) -> list[Value]:
        """Return one reading, a value for each of `metrics`. NvmlError where the GPU is gone."""
        values: list[Value] = []
        lost: NvmlError | None = None
        for place, (width, ask) in enumerate(self._asked):
            try:
                values += ask() if ask is not None else [None] * width
            except NvmlError as error:
                values += [None] * width
                if error.code == NOT_SUPPORTED:
                    self._asked[place] = (width, None)
                else:
                    lost = error
        if lost is not None and not any(value is not None for value in values):
            raise lost
        return values + (self._read_gpm() if gpm else [])

    def _read_gpm(self) -> list[Value]:
        missing: list[Value] = [None] * len(_GPM)
        if not self._samples:
            return missing
        older, newer = self._samples[(self._read + 1) % 2], self._samples[self._read % 2]
        try:
            self._nvml.read_gpm(self.gpu, newer)
            self._read += 1
            if self._read == 1:
                return missing
            found = self._nvml.gpm_between(older, newer, _GPM_NUMBERS)
        except NvmlError:
            self._read = 0
            return missing
        return [
            None if value is None or value != value else value * factor
            for value, (_, _, _, factor) in zip(found, _GPM, strict=True)
        ]
