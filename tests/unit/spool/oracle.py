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
            if other.start_end == one.start_end
            and (one.start_end or other.thread == one.thread)
            and other.end > one.start
        ]
        parent, least = -1, 0
        if not one.start_end:
            for row, other, lane in mates:
                if other.start <= one.start and other.end >= one.end:
                    parent, least = row, lane + 1
        taken = {lane for _, _, lane in mates}
        placed.append(
            (one, next(lane for lane in range(least, len(taken) + least + 1) if lane not in taken), parent)
        )
    return placed


@dataclass(frozen=True)
class Tasked:
    """A range of a program with tasks: `id` is the agent's, `parent` another range's, `end` when it closed."""

    start: int
    end: int
    id: int
    thread: int = 0
    task: int = 0
    start_end: bool = False
    parent: int = 0


def parents(ordered: list[Tasked], makers: dict[int, int]) -> list[int]:
    """Return the row of each range's parent (-1: none); ranges come in the order of the table."""
    rows = {one.id: row for row, one in enumerate(ordered) if one.start_end and one.id}
    found = []
    for row, one in enumerate(ordered):
        if one.start_end and (one.parent or not one.task):
            at = rows.get(one.parent, -1) if one.parent else -1
            found.append(at if at < row else -1)
            continue
        around = [
            before
            for before, other in enumerate(ordered[:row])
            if other.start <= one.start < other.end and other.end >= one.end
            if (not other.start_end and other.thread == one.thread)
            or (other.start_end and other.task == one.task != 0)
        ]
        maker = rows.get(makers.get(one.task, 0), -1) if one.task else -1
        found.append(max([*around, maker if maker < row else -1], default=-1))
    return found
