"""The options of GPU sampling: as they are typed, and their meaning.

Without click.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from warplens.cli.options.argument import Argument
from warplens.errors import UsageError
from warplens.recording.options.gpu import GpuMetrics, Kind

ARGUMENTS = (
    Argument(
        ("--gpu-metrics",),
        "KIND",
        "Sample the GPUs: nvml (utilization, memory, power, clocks, temperature, throttling), gpm "
        "(also activity of their units, on Hopper and later), none.  [default: nvml]",
    ),
    Argument(("--gpu-metrics-frequency",), "HZ", "Samples per second, 0.1 to 100.  [default: 10]"),
    Argument(
        ("--gpu-metrics-device", "--gpu-metrics-devices"),
        "LIST",
        "GPUs to sample: numbers as in nvidia-smi, all or none.  [default: all]",
    ),
)
_KINDS: dict[str, Kind] = {"none": "none", "nvml": "nvml", "gpm": "gpm"}
_LEAST, MOST = 0.1, 100.0


def gpu_metrics(given: Mapping[str, str]) -> GpuMetrics:
    """Return what `given` says, which maps long names to texts; UsageError for nonsense."""
    base = GpuMetrics()
    devices = given.get("--gpu-metrics-devices")
    kind = given.get("--gpu-metrics")
    if kind is not None and kind.lower() not in _KINDS:
        raise UsageError(f"--gpu-metrics {kind}: write none, nvml or gpm.")
    numbers = _devices(devices) if devices is not None else ()
    # nsys has no --gpu-metrics: there the devices switch it on
    chosen = _KINDS[kind.lower()] if kind is not None else "none" if numbers is None else base.kind
    return GpuMetrics(
        kind="none" if numbers is None else chosen,
        frequency=_frequency(given["--gpu-metrics-frequency"])
        if "--gpu-metrics-frequency" in given
        else base.frequency,
        devices=numbers or (),
        chosen=kind is not None or devices is not None,
    )


def slower_than_asked(given: Mapping[str, str]) -> str | None:
    """Return what to say where the frequency that nsys would take is more than there is.

    None if it is not.
    """
    text = given.get("--gpu-metrics-frequency")
    if text is None or _number(text) <= MOST:
        return None
    return f"--gpu-metrics-frequency {text}: the driver is queried at most {MOST:g} times a second."


def _frequency(text: str) -> float:
    value = _number(text)
    if not value >= _LEAST:  # also for nan
        raise UsageError(
            f"--gpu-metrics-frequency {text}: write a number of samples per second, from {_LEAST:g} "
            f"to {MOST:g}."
        )
    return min(value, MOST)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _devices(text: str) -> tuple[int, ...] | None:
    """The numbers; () = all of them, None = none."""
    if text.lower() in ("all", "none"):
        return () if text.lower() == "all" else None
    numbers = text.split(",")
    if not all(number.isascii() and number.isdecimal() and len(number) < 5 for number in numbers):
        raise UsageError(
            f"--gpu-metrics-devices {text}: write GPU numbers as in nvidia-smi, e.g. 0,1; or all, or none."
        )
    return tuple(dict.fromkeys(int(number) for number in numbers))
