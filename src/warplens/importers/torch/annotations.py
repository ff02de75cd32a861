"""Ranges that a program named while the allocator of PyTorch kept its history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.importers.rows import numbered
from warplens.storage.writer import THREADS_PER_PROCESS

if TYPE_CHECKING:
    from warplens.storage.writer import PartWriter

_US = 1000  # ns


@dataclass(frozen=True)
class MemoryAnnotations:
    """Ranges in order of start, the outer one first. Times: us since 1970; of `within`, ns of the report."""

    name: list[str]
    start: Int64Array
    end: Int64Array

    @classmethod
    def of(cls, entries: Iterable[dict[str, Any]]) -> MemoryAnnotations:
        """Pair begins and ends by name; what lacks either is left out. Each device tells the same: the first one counts."""
        opened: dict[str, list[int]] = {}
        rows = []
        devices = set()
        for entry in sorted(entries, key=lambda entry: int(entry["time_us"])):
            devices.add(entry.get("device", 0))
            if entry.get("device", 0) != min(devices):
                continue
            name, time = str(entry["name"]), int(entry["time_us"])
            if entry["stage"] == "START":
                opened.setdefault(name, []).append(time)
            elif opened.get(name):
                rows.append((opened[name].pop(), -time, name))
        rows.sort()
        start, end = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
        return cls([name for *_, name in rows], start, -end)

    def within(self, first: int, last: int) -> MemoryAnnotations:
        """Return those that overlap a time, cut to it, in ns from its begin."""
        kept = np.flatnonzero((self.end >= first) & (self.start <= last))
        start, end = (np.clip(times[kept], first, last) - first for times in (self.start, self.end))
        return MemoryAnnotations([self.name[row] for row in kept.tolist()], start * _US, end * _US)

    def write(self, part: PartWriter, thread: int) -> Int64Array:
        """Write `nvtx_ranges`; return the ids."""
        count = len(self.name)
        key = np.full(count, thread // THREADS_PER_PROCESS, np.int64)
        ids = numbered(key)
        depth, above = native.nest(np.full(count, thread, np.int64), self.start, self.end)
        never = np.zeros(count, bool)
        part.write(
            "nvtx_ranges",
            {
                "id": ids,
                "process": key,
                "thread": np.full(count, thread, np.int64),
                "start": self.start,
                "end": self.end,
                "message": pa.array(self.name, pa.string()).dictionary_encode(),
                "style": pa.array(["PushPop"] * count, pa.string()).dictionary_encode(),
                "depth": depth,
                "parent": pa.array(ids[above], mask=above < 0) if count else pa.array([], pa.int64()),
                "unfinished": never,
                "inherited": never,
                "clipped": never,
            },
        )
        return ids
