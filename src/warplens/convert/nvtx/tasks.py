"""The table `tasks`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from warplens.spool.definitions import Definition, Definitions
from warplens.spool.events import Events
from warplens.storage import schema

_MOST = (1 << 32) - 1
_LATEST = 1 << 62
_LAST_THREAD = (1 << 24) - 1


def makers(definitions: Definitions) -> dict[int, int]:
    """Return the range (the agent's id) that was open where each task was made."""
    return {one.id: one.number("parent") or 0 for one in definitions.of("task") if 0 < one.id <= _MOST}


def table(
    process: int,
    thread_base: int,
    first: int,
    definitions: Definitions,
    events: Events,
    clock: Callable[[int], int],
) -> pa.Table | None:
    """Return the rows of one process, after its last slice.

    Tasks that ran but were never defined have no name. None without tasks.
    """
    defined: dict[int, Definition] = {one.id: one for one in definitions.of("task") if 0 < one.id <= _MOST}
    seen = {number: (start, thread) for number, start, thread in events.tasks().tolist()}
    numbers = sorted(defined.keys() | seen.keys())
    if not numbers:
        return None
    told = [defined.get(number) for number in numbers]
    parents = events.rows_of([one.number("parent") or 0 if one else 0 for one in told])
    starts, threads = [], []
    for number, one in zip(numbers, told, strict=True):
        start, thread = seen.get(number, (_LATEST, 0))
        starts.append(clock(min(start, one.start if one else _LATEST, _LATEST)))
        threads.append(thread_base + (min(one.thread, _LAST_THREAD) if one else thread))
    columns = {
        "task": [first + number for number in numbers],
        "process": [process] * len(numbers),
        "thread": threads,
        "name": [one.text("name") if one else None for one in told],
        "library": [(one.text("library") if one else None) or "unknown" for one in told],
        "parent": [parent if parent >= 0 else None for parent in parents],
        "start": starts,
    }
    return schema.build("tasks", columns)
