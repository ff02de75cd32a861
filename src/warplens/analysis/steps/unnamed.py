"""Training steps of a program that names none, bounded by data fetches and optimizer steps.

PyTorch names both: `enumerate(DataLoader)#…__next__` and `Optimizer.step#Adam.step`.

    fetch   f       f       f       f E     f: a batch comes, E: there is none any more
    step      o       o       o             o: the optimizer's step
            |-------|-------|-------|       the steps
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from warplens.report.report import Report

BY_OPTIMIZER = "Optimizer.step"
"""What these steps are called."""
_STEP = "Optimizer.step#"
_FETCH = "enumerate(DataLoader)#"
_LONG = 10  # times the usual: a longer stretch behind the optimizer's step, such as an evaluation, is not a part of the step


def unnamed_steps(report: Report, known: Collection[int]) -> Iterator[pa.Table]:
    """Yield the steps of each process but `known` ones: process, thread, name, start, end, range.

    `range`: of the optimizer's step in `nvtx_ranges`. At least two steps, of one thread.
    """
    rows = report.sql(
        """SELECT process, thread, "start", "end", id AS range, message::VARCHAR AS message FROM nvtx_ranges
           WHERE starts_with(message, $step) OR starts_with(message, $fetch) ORDER BY process, "start", id""",
        {"step": _STEP, "fetch": _FETCH},
    )
    process, thread = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("process", "thread"))
    is_step = np.array([text.startswith(_STEP) for text in rows.column("message").to_pylist()], bool)
    for key in np.unique(process[is_step]).tolist():
        if key in known:
            continue
        numbers, counts = np.unique(thread[is_step & (process == key)], return_counts=True)
        mine = (process == key) & (thread == numbers[np.argmax(counts)])
        its = _steps(rows.filter(pa.array(mine & is_step)), rows.filter(pa.array(mine & ~is_step)))
        if its is not None:
            yield its


def _steps(optimizer: pa.Table, fetches: pa.Table) -> pa.Table | None:
    start, end = (np.asarray(optimizer.column(name).to_numpy(), np.int64) for name in ("start", "end"))
    fetched = np.asarray(fetches.column("start").to_numpy(), np.int64)
    before = np.searchsorted(fetched, start, side="right") - 1
    if len(fetched) and (before >= 0).any():
        last, begins, ends = _between_fetches(fetched, before, end)
    else:
        # From the end of one to the end of the next. The first one has no known begin.
        last, begins, ends = np.arange(1, len(end)), end[:-1], end[1:]
    if len(last) < 2:
        return None
    chosen = optimizer.take(pa.array(last))
    return pa.table(
        {
            "process": chosen.column("process"),
            "thread": chosen.column("thread"),
            "name": pa.array([BY_OPTIMIZER] * len(last), pa.string()),
            "start": begins,
            "end": ends,
            "range": chosen.column("range"),
        }
    )


def _between_fetches(
    fetched: Int64Array, before: Int64Array, end: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the row of the last optimizer's step in each step, begins and ends.

    `before`: the fetch before each optimizer's step. Several steps of optimizers without a fetch between them are one step; several
    fetches before each, where gradients are accumulated, too.
    """
    last = np.flatnonzero(np.diff(before, append=len(fetched)) != 0)
    last = last[before[last] >= 0]
    fetch = before[last]
    usual = max(1, round(float(np.median(np.diff(fetch))))) if len(fetch) > 1 else 1
    first = np.maximum(fetch - usual + 1, np.append(0, fetch[:-1] + 1))
    following = np.append(fetched, end[-1:])[fetch + 1]
    behind = following - end[last]
    ends = np.where(behind > _LONG * max(int(np.median(behind)), 1), end[last], following)
    return last, fetched[first], np.maximum(ends, end[last])
