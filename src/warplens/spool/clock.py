"""Reads the clock log: the drift of the counter's conversion, and the wall clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warplens.arrays import Int64Array
from warplens.handover import untrusted
from warplens.spool.layout import Clock
from warplens.spool.process import number

TOLERANCE_NS = 1_000
_MOST = 1 << 20  # lines: 12 days
_LONGEST = 4096  # bytes of a line
_COUNTER = (1 << 64) - 1


@dataclass(frozen=True)
class ClockReading:
    """The clocks, read together."""

    counter: int
    monotonic: int
    realtime: int


def read_samples(path: Path) -> list[ClockReading]:
    """Read the log, oldest first; a half-written or broken line is left out.

    Empty when there is none.

    Of a very long one every second (fourth, …) line is read.
    """
    samples: list[ClockReading] = []
    every = 1
    number = 0
    try:
        with untrusted.lines(path, _LONGEST) as lines:
            for line in lines:
                number += 1
                sample = _sample(line) if number % every == 0 else None
                if sample is not None:
                    samples.append(sample)
                if len(samples) > _MOST:
                    del samples[::2]
                    every *= 2
    except OSError:
        pass
    return sorted(samples, key=lambda sample: sample.monotonic)


def realtime_offset(samples: list[ClockReading]) -> int | None:
    """Return CLOCK_REALTIME - CLOCK_MONOTONIC in ns (the median reading), None without any."""
    offsets = sorted(sample.realtime - sample.monotonic for sample in samples)
    return offsets[(len(offsets) - 1) // 2] if offsets else None


def correction(clock: Clock, samples: list[ClockReading]) -> tuple[Int64Array, Int64Array, int] | None:
    """Return knots from the spool's times to CLOCK_MONOTONIC, and the largest error.

    The error (ns) only if above the tolerance.

    Times before the reading that shows it stay as they are: of what was converted by then, nothing changes while a recording continues.
    """
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
        correct = sample.monotonic if worst > TOLERANCE_NS else converted
        if not source or (converted > source[-1] and correct >= target[-1]):
            source.append(converted)
            target.append(correct)
    if worst <= TOLERANCE_NS:
        return None
    return np.array(source, np.int64), np.array(target, np.int64), worst


def _sample(line: bytes) -> ClockReading | None:
    try:
        data = json.loads(line)
        counter, monotonic, realtime = (
            number(data[name], _COUNTER) for name in ("counter", "monotonic", "realtime")
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if counter is None or monotonic is None or realtime is None or max(monotonic, realtime) > 1 << 62:
        return None
    return ClockReading(counter, monotonic, realtime)
