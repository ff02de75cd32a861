"""The slow, obvious answer to where a range belongs: what the native code is held against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """One range; `order` grows with the order in which ranges of a thread were closed."""

    thread: int
    start: int
    end: int
    order: int = 0
    start_end: bool = False


def overlap(a: Range, b: Range) -> bool:
    """Half-open: touching is not overlapping, and a range without duration overlaps only what is open around it."""
    return a.end > b.start and b.end > a.start


def place(ranges: list[Range]) -> list[tuple[Range, int, int]]:
    """Return each range with its lane and the row of its parent (-1: none), in the order of the table."""
    ordered = sorted(ranges, key=lambda one: (one.start, -one.end, -one.order))
    placed: list[tuple[Range, int, int]] = []
    for one in ordered:
        mates = [
            (row, other, lane)
            for row, (other, lane, _) in enumerate(placed)
            if other.start_end == one.start_end and (one.start_end or other.thread == one.thread) and other.end > one.start
        ]
        parent, least = -1, 0
        if not one.start_end:
            for row, other, lane in mates:
                if other.start <= one.start and other.end >= one.end:
                    parent, least = row, lane + 1
        taken = {lane for _, _, lane in mates}
        placed.append((one, next(lane for lane in range(least, len(taken) + least + 1) if lane not in taken), parent))
    return placed
