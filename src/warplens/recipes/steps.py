"""Numbers of steps, by which ranks that began to record at different steps are put beside each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from warplens.analysis.steps import steps as analysis
from warplens.errors import MissingData
from warplens.report import Report, Selection

_NUMBER = re.compile(r"(\d+)$")


def numbers(names: Sequence[str]) -> list[int] | None:
    """Return the number behind each name, as in `ProfilerStep#12`; None if one lacks it or two have the same."""
    matches = [match for name in names if (match := _NUMBER.search(name))]
    values = [int(match[1]) for match in matches]
    return values if len(values) == len(names) and len(set(values)) == len(values) else None


def at_times(report: Report, process: pa.ChunkedArray, times: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Return for each time (ns) whether a step of the process is open, and its number; null without one."""
    inside, result = np.zeros(len(times), bool), np.full(len(times), -1, np.int64)
    try:
        rows = analysis.steps(report, Selection())
    except MissingData:
        return pa.array(inside), pa.nulls(len(times), pa.int64())
    processes, at = process.to_numpy(), times.to_numpy()
    step_process = rows.column("process").to_numpy()
    for one in np.unique(step_process).tolist():
        own = np.flatnonzero(step_process == one)
        start, end = (rows.column(edge).to_numpy()[own] for edge in ("start", "end"))
        mine = np.flatnonzero(processes == one)
        place = np.searchsorted(start, at[mine], "right") - 1
        open_then = (place >= 0) & (at[mine] < end[np.maximum(place, 0)])
        inside[mine[open_then]] = True
        known = numbers(rows.column("name").take(pa.array(own)).to_pylist())
        if known is not None:
            result[mine[open_then]] = np.array(known, np.int64)[place[open_then]]
    return pa.array(inside), pa.array(result, mask=result < 0)
