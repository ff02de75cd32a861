"""Lines of pictures by column, and rows of operations: what drawn steps and paths are made of."""

from __future__ import annotations

from typing import Any

TICK, ORIGIN = 1_000, 1_000_000_000


def line(head: str, *things: tuple[int, int, str]) -> str:
    """A line of a picture in which each thing lies from its first column to behind its last; `(name` or `[name` says which bracket."""
    text = ""
    for first, last, name in things:
        text = text.ljust(first) + name.ljust(last - first - 1) + {"[": "]", "(": ")"}[name[0]]
    return f"{head} |{text}"


def op(
    name: str, thread: int, first: int, last: int, number: int, *, backward: bool = False
) -> dict[str, Any]:
    times = {"start": ORIGIN + first * TICK, "end": ORIGIN + last * TICK}
    return {
        "range": 9_000 + number,
        "process": 0,
        "thread": thread,
        **times,
        "name": name,
        "backward": backward,
    }
