"""Brings the times of a trace to one clock: that of most events, or the one that the trace calls its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warplens import native
from warplens.arrays import Int64Array
from warplens.importers.perfetto import wire
from warplens.importers.perfetto.trace import PerfettoTrace

REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
_SNAPSHOT = 6
NAMES = {REALTIME: "realtime", MONOTONIC: "monotonic", BOOTTIME: "boottime"}


class Clocks:
    """The clocks of a trace; `key` is the one of the report.

    `unknown`: events on a clock that nothing connects with it.
    """

    def __init__(self, trace: PerfettoTrace) -> None:
        self._trace = trace
        self._snapshots, primary = _snapshots(trace)
        used = np.bincount(trace.events["clock"], minlength=256) + np.bincount(
            trace.samples["clock"], minlength=256
        )
        by_key = {key: int(used[index]) for index, key in enumerate(trace.clocks)}
        common = max(by_key, key=lambda key: by_key[key], default=BOOTTIME)
        known = {key for snapshot in self._snapshots for key in snapshot}
        if primary in known and (common == primary or common in known):
            common = primary
        elif common >= 128 and BOOTTIME in known:
            common = BOOTTIME  # not a clock that only one recorder has
        self.key = common
        self.unknown = 0
        self._maps = {key: self._map(key) for key in trace.clocks}

    @property
    def name(self) -> str:
        """Name of the report's clock."""
        return NAMES.get(self.key, f"perfetto {self.key & 0xFF}")

    @property
    def realtime_offset(self) -> int:
        """Offset from the report's times to ns since 1970; 0 if the trace does not state it."""
        for snapshot in self._snapshots:
            if REALTIME in snapshot and self.key in snapshot:
                return snapshot[REALTIME] - snapshot[self.key]
        return 0

    def pairs(self) -> list[tuple[int, int]]:
        """Return the report's clock and the real time of each snapshot that has both."""
        return [
            (shot[self.key], shot[REALTIME])
            for shot in self._snapshots
            if REALTIME in shot and self.key in shot
        ]

    def times(self, columns: dict[str, npt.NDArray[np.generic]]) -> Int64Array:
        """Return the times of events or samples."""
        time, clock = np.array(columns["time"], np.int64), columns["clock"]
        for index, key in enumerate(self._trace.clocks):
            if key == self.key:
                continue
            mine = clock == index
            if not mine.any():
                continue
            known = self._maps[key]
            if known is None:
                self.unknown += int(mine.sum())
            else:
                time[mine] = native.map_times(*known, np.ascontiguousarray(time[mine]))
        return time

    def at(self, time: int, clock: int) -> int:
        """Return one time of a clock, which is given by its number, on the report's clock."""
        known = self._maps.get(self._trace.clocks[clock]) if clock < len(self._trace.clocks) else None
        if known is None or self._trace.clocks[clock] == self.key:
            return time
        return int(native.map_times(*known, np.array([time], np.int64))[0])

    def _map(self, key: int) -> tuple[Int64Array, Int64Array] | None:
        both = sorted(
            {(shot[key], shot[self.key]) for shot in self._snapshots if key in shot and self.key in shot}
        )
        # Readings of both clocks, sorted and unique in the source, between which `map_times` interpolates.
        both = [pair for index, pair in enumerate(both) if index == 0 or pair[0] != both[index - 1][0]]
        if not both:
            return None
        source, target = (np.array(column, np.int64) for column in zip(*both, strict=True))
        return source, target


def _snapshots(trace: PerfettoTrace) -> tuple[list[dict[int, int]], int]:
    snapshots: list[dict[int, int]] = []
    primary = 0
    for packet in trace.others(_SNAPSHOT):
        shot: dict[int, int] = {}
        try:
            message = wire.message(packet.data)
            for entry in wire.inner(message, 1):
                clock = wire.message(entry)
                key, time = wire.whole(clock, 1), wire.whole(clock, 2) * max(wire.whole(clock, 4), 1)
                if 64 <= key <= 127:  # of this sequence alone
                    key |= packet.sequence + 1 << 8
                if 0 <= time < 1 << 62:
                    shot[key] = time
            primary = wire.whole(message, 2) or primary
        except ValueError:
            continue
        snapshots.append(shot)
    return snapshots, primary
