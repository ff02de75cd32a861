"""Calls the few functions of NVIDIA's management library that read the state of GPUs.

Own declarations: no package, no header is needed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"
NOT_SUPPORTED = 3
_TEXT = 96
_GPM_VERSION = 1
_MOST_METRICS = 64


class NvmlError(Exception):
    """A function failed: `code` is NVML's, 0 if the library itself is missing."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its number on this host, `GPU-…`, its product name, and NVML's handle."""

    gpu: int
    uuid: str
    name: str
    handle: ctypes.c_void_p


class _Rates(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Support(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("supported", ctypes.c_uint)]


class _Metric(ctypes.Structure):
    _fields_ = [
        ("metric", ctypes.c_uint),
        ("result", ctypes.c_int),
        ("value", ctypes.c_double),
        ("texts", ctypes.c_char_p * 3),
    ]


class _Metrics(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("samples", ctypes.c_void_p * 2),
        ("metrics", _Metric * _MOST_METRICS),
    ]


class Nvml:
    """The library, ready for use until `close`. NvmlError if there is none, or no driver."""

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise NvmlError(0, f"{library} cannot be loaded: {error}") from error
        self._call("nvmlInit_v2")

    def close(self) -> None:
        """Let go of the driver."""
        try:
            self._call("nvmlShutdown")
        except NvmlError:
            pass

    def driver(self) -> str:
        """Return the driver's version."""
        return self._text("nvmlSystemGetDriverVersion")

    def gpus(self) -> list[Gpu]:
        """Return the GPUs that this user may see."""
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found = []
        for number in range(count.value):
            handle = ctypes.c_void_p()
            try:
                self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(handle))
                found.append(
                    Gpu(
                        number,
                        self._text("nvmlDeviceGetUUID", handle),
                        self._text("nvmlDeviceGetName", handle),
                        handle=handle,
                    )
                )
            except NvmlError:  # one that fell off the bus, or belongs to others
                continue
        return found

    def utilization(self, gpu: Gpu) -> tuple[float, float]:
        """Return for how much of the last period (%) kernels ran, and memory was read or written."""
        rates = _Rates()
        self._call("nvmlDeviceGetUtilizationRates", gpu.handle, ctypes.byref(rates))
        return float(rates.gpu), float(rates.memory)

    def memory_used(self, gpu: Gpu) -> float:
        """Return how much memory is taken, bytes."""
        memory = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", gpu.handle, ctypes.byref(memory))
        return float(memory.used)

    def power(self, gpu: Gpu) -> float:
        """Return what it draws, W."""
        return self._number("nvmlDeviceGetPowerUsage", gpu) / 1000

    def clock(self, gpu: Gpu, kind: int) -> float:
        """Return a clock, MHz: of `kind` 1 the multiprocessors', 2 the memory's."""
        value = ctypes.c_uint()
        self._call("nvmlDeviceGetClockInfo", gpu.handle, ctypes.c_int(kind), ctypes.byref(value))
        return float(value.value)

    def temperature(self, gpu: Gpu) -> float:
        """Return how warm it is, degrees Celsius."""
        value = ctypes.c_uint()
        self._call("nvmlDeviceGetTemperature", gpu.handle, ctypes.c_int(0), ctypes.byref(value))
        return float(value.value)

    def throttle_reasons(self, gpu: Gpu) -> float:
        """Return why the clocks are lower than they could be: bits."""
        value = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu.handle, ctypes.byref(value))
        return float(value.value)

    def has_gpm(self, gpu: Gpu) -> bool:
        """Say whether it counts what its parts do (GPM): Hopper and later do."""
        support = _Support(_GPM_VERSION, 0)
        try:
            self._call("nvmlGpmQueryDeviceSupport", gpu.handle, ctypes.byref(support))
        except NvmlError:
            return False
        return bool(support.supported)

    def gpm_sample(self) -> ctypes.c_void_p:
        """Return memory for one reading of the counters; it stays taken."""
        sample = ctypes.c_void_p()
        self._call("nvmlGpmSampleAlloc", ctypes.byref(sample))
        return sample

    def read_gpm(self, gpu: Gpu, sample: ctypes.c_void_p) -> None:
        """Read the counters into `sample`."""
        self._call("nvmlGpmSampleGet", gpu.handle, sample)

    def gpm_between(
        self, first: ctypes.c_void_p, second: ctypes.c_void_p, metrics: Sequence[int]
    ) -> list[float | None]:
        """Return what NVML's `metrics` were between two readings.

        None if this GPU has no such.
        """
        asked = _Metrics(_GPM_VERSION, len(metrics))
        asked.samples[0], asked.samples[1] = first, second
        for place, metric in enumerate(metrics):
            asked.metrics[place].metric = metric
        self._call("nvmlGpmMetricsGet", ctypes.byref(asked))
        return [None if item.result else float(item.value) for item in asked.metrics[: len(metrics)]]

    def _number(self, name: str, gpu: Gpu) -> float:
        value = ctypes.c_uint()
        self._call(name, gpu.handle, ctypes.byref(value))
        return float(value.value)

    def _text(self, name: str, *before: object) -> str:
        room = ctypes.create_string_buffer(_TEXT)
        self._call(name, *before, room, ctypes.c_uint(_TEXT))
        return room.value.decode(errors="replace")

    def _call(self, name: str, *arguments: object) -> None:
        try:
            function: Callable[..., int] = getattr(self._library, name)
        except AttributeError as error:
            raise NvmlError(NOT_SUPPORTED, f"this driver has no {name}") from error
        code = function(*arguments)
        if code:
            raise NvmlError(code, f"{name}: {self._meaning(code)}")

    def _meaning(self, code: int) -> str:
        try:
            tell = self._library.nvmlErrorString
            tell.restype = ctypes.c_char_p
            return (tell(ctypes.c_int(code)) or b"").decode(errors="replace") or f"error {code}"
        except AttributeError:
            return f"error {code}"
