"""Relates clocks of GPUs to the report's, by launches that recorded inside their kernels.

It places times that are still raw.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report import Report

MOST = 1000  # pairs of a GPU; of more launches, evenly chosen ones
_SQL = """SELECT process, device, "start", "offset" FROM intrakernel_launches
    WHERE stored AND device IS NOT NULL AND "offset" IS NOT NULL AND merged <> 'host' ORDER BY process, device, "start" """


def gpu_clocks(report: Report) -> Iterator[tuple[int, int, Int64Array, Int64Array]]:
    """Yield process, device, and times of the report with those of the GPU's global timer, ns.

    Both rise.
    """
    if not report.tables["intrakernel_launches"]:
        return
    rows = report.sql(_SQL)
    if not rows.num_rows:
        return
    process, device, start, offset = (
        np.asarray(rows.column(name).to_numpy(), np.int64) for name in rows.column_names
    )
    edges = np.flatnonzero((np.diff(process, prepend=-1) != 0) | (np.diff(device, prepend=-1) != 0))
    for first, last in zip(edges.tolist(), [*edges[1:].tolist(), len(start)], strict=True):
        own, theirs = start[first:last], start[first:last] - offset[first:last]
        # A row counts if it exceeds every earlier one on both clocks, so both columns rise
        # strictly: own = [1, 3, 2, 5] keeps 1, 3 and 5. At most MOST rows are taken, spread evenly.
        rises = (own > np.maximum.accumulate(np.append(-1, own))[:-1]) & (
            theirs > np.maximum.accumulate(np.append(-1, theirs))[:-1]
        )
        some = np.flatnonzero(rises)
        some = (
            some[np.unique(np.linspace(0, len(some) - 1, MOST).astype(np.int64))]
            if len(some) > MOST
            else some
        )
        yield int(process[first]), int(device[first]), own[some], theirs[some]
