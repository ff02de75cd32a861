"""Rows that importers of all formats write alike: ids of rows, the window of a whole recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from warplens.arrays import Int64Array
from warplens.storage.writer import RANGES_PER_PROCESS


def numbered(process: Int64Array) -> Int64Array:
    """Return ids for rows that are sorted by process: `process * 2^32` and their number within it."""
    if not len(process):
        return process
    # Processes [3, 3, 5] get the ids 3 << 32, (3 << 32) + 1, 5 << 32.
    first = np.flatnonzero(np.concatenate([[True], process[1:] != process[:-1]]))
    lengths = np.diff(np.append(first, len(process)))
    return np.asarray(
        process * RANGES_PER_PROCESS + np.arange(len(process)) - np.repeat(first, lengths), np.int64
    )


def whole_window(part: int, host: str, begin: int, end: int) -> list[dict[str, Any]]:
    """Return the row of `capture_windows` of a recording without windows; `begin`, `end`: ns."""
    span = {"start": begin, "end": max(end, begin)}
    return [{"part": part, "number": 1, "host": host, **span, "opened_by": "start", "closed_by": "end"}]
