"""Slices for the tests of the index: made at random, put into an index, and kept beside it as a plain list."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from warplens.timeline.index import IndexBuilder, LaneIndex

NAMES = ("copy", "Gemm", "<script>", "é", "")
LAYERS = {"kernels": ("process", "stream"), "marks": ("process",)}


@dataclass(frozen=True)
class One:
    """A slice as it was put in."""

    layer: str
    process: int
    stream: int
    start: int
    end: int
    name: str
    row: int


def at_random(
    seed: int, count: int, *, tracks: int = 3, gap: int = 40, length: int = 60, ordered: bool = True
) -> list[One]:
    """Return slices that overlap, touch, and take no time at all, in order of start unless not `ordered`."""
    rng = random.Random(seed)
    found, now = [], rng.randint(-1000, 1000)
    for row in range(count):
        now += rng.choice((0, 0, 1, gap, gap * 50 if rng.random() < 0.01 else gap))
        long = rng.choice((0, 1, length, length * 20)) if rng.random() < 0.3 else rng.randint(0, length)
        found.append(
            One("kernels", rng.randint(0, 1), rng.randrange(tracks), now, now + long, rng.choice(NAMES), row)
        )
    if not ordered:
        rng.shuffle(found)
    return found


def build(path: Path, slices: Sequence[One], batch: int = 1000) -> Path:
    """Write an index of the slices, some rows at a time."""
    with IndexBuilder(path, LAYERS) as builder:
        for first in range(0, len(slices), batch):
            rows = slices[first : first + batch]
            for layer in LAYERS:
                chosen = [row for row in rows if row.layer == layer]
                builder.add(
                    layer,
                    pa.table(
                        {
                            "start": pa.array([row.start for row in chosen], pa.int64()),
                            "end": pa.array([row.end for row in chosen], pa.int64()),
                            "process": pa.array([row.process for row in chosen], pa.int64()),
                            "stream": pa.array([row.stream for row in chosen], pa.int64()),
                            "name": pa.array([row.name for row in chosen], pa.string()),
                            "id": pa.array([row.process << 32 | row.row for row in chosen], pa.int64()),
                        }
                    ),
                )
        builder.commit()
    return path


def opened(folder: Path, slices: Sequence[One], *, batch: int = 1000, shift: int = 0) -> LaneIndex:
    """Return the index of the slices."""
    return LaneIndex(build(folder / "some.lanes", slices, batch), shift)


def of_track(index: LaneIndex, slices: Sequence[One], number: int) -> list[One]:
    """Return the slices of a track."""
    track = index.tracks[number]
    key = track.key
    return [
        one
        for one in slices
        if (one.layer, one.process, one.stream)
        == (track.layer, key["process"], key.get("stream", one.stream))
    ]


def union(spans: Sequence[tuple[int, int]]) -> int:
    """Return how long at least one of the spans is there."""
    total, covered = 0, -(1 << 62)
    for begin, end in sorted(spans):
        total += max(end - max(begin, covered), 0)
        covered = max(covered, end)
    return total
