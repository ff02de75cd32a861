"""The clock log: how far the counter's conversion drifted, and what the wall clock was."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

import numpy as np
import numpy.typing as npt

from warpline.spool.layout import Clock
from warpline.spool.process import number

TOLERANCE_NS = 1_000
_COUNTER = (1 << 64) - 1


@dataclass(frozen=True)
class ClockSample:
    """The clocks, read together."""

    counter: int
    monotonic: int
    realtime: int


def read_samples(path: Path) -> list[ClockSample]:
    """Read the log, oldest first; a half-written or broken line is left out. Empty when there is none."""
    samples = []
    try:
        with open(path, "rb") as file:
            for line in file:
                sample = _sample(line)
                if sample is not None:
                    samples.append(sample)
    except OSError:
        pass
    return sorted(samples, key=lambda sample: sample.monotonic)


def realtime_offset(samples: list[ClockSample]) -> int | None:
    """Return CLOCK_REALTIME - CLOCK_MONOTONIC in ns (the median reading), None without any."""
    return median_low(sample.realtime - sample.monotonic for sample in samples) if samples else None


def correction(clock: Clock, samples: list[ClockSample]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int] | None:
    """Return knots from the spool's times to CLOCK_MONOTONIC and the largest error (ns), when it is above the tolerance."""
    if clock.kind == "monotonic" or not samples:
        return None
    source: list[int] = []
    target: list[int] = []
    worst = 0
    for sample in samples:
        converted = clock.ns(sample.counter)
        if not 0 <= converted < 1 << 62:
            continue
        worst = max(worst, abs(converted - sample.monotonic))
        if not source or (converted > source[-1] and sample.monotonic >= target[-1]):
            source.append(converted)
            target.append(sample.monotonic)
    if worst <= TOLERANCE_NS:
        return None
    return np.array(source, np.int64), np.array(target, np.int64), worst


def _sample(line: bytes) -> ClockSample | None:
    try:
        data = json.loads(line)
        counter, monotonic, realtime = (number(data[name], _COUNTER) for name in ("counter", "monotonic", "realtime"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if counter is None or monotonic is None or realtime is None or max(monotonic, realtime) > 1 << 62:
        return None
    return ClockSample(counter, monotonic, realtime)
