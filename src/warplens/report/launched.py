"""Finds the CUDA calls that began in a window of the capture.

The GPU work that they launched belongs to it, whenever it ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.report.cutting import Calls, Window
from warplens.report.row_groups import Reader, RowGroup, groups_of
from warplens.report.store import Piece

_API_ROWS_PER_PROCESS = 1 << 32


def launched(pieces: Iterable[Piece], windows: Mapping[int, Window]) -> dict[int, Calls]:
    """Return the calls that began in the window of each part.

    Ids of `cuda_api` from, and to behind the last, for each process.

    `pieces`: those of `cuda_api`, whole. Ids grow with start within a process, so they lie next to one another: only row groups at the
    edges of a window are read.
    """
    ranges: dict[int, dict[int, tuple[int, int]]] = {part: {} for part in windows}
    reader = Reader("cuda_api")
    for piece in pieces:
        for group in groups_of(piece) if piece.part in windows else ():
            for process, first, last in _inside(group, reader, windows[piece.part]):
                low, high = ranges[piece.part].get(process, (first, last))
                ranges[piece.part][process] = (min(low, first), max(high, last))
    return {
        part: tuple(sorted((first, last + 1) for first, last in calls.values()))
        for part, calls in ranges.items()
    }


def _inside(group: RowGroup, reader: Reader, window: Window) -> list[tuple[int, int, int]]:
    """Return process, least and greatest id of the calls in a row group that began in the window."""
    begin, end = window
    start, ids = group.edges("start"), group.edges("id")
    if start is not None and (start[0] + group.shift >= end or start[1] + group.shift < begin):
        return []
    if (
        start is not None
        and ids is not None
        and start[0] + group.shift >= begin
        and start[1] + group.shift < end
    ):
        process = ids[0] // _API_ROWS_PER_PROCESS
        if process == ids[1] // _API_ROWS_PER_PROCESS:
            return [(process, *ids)]
    rows = reader.read(group, ["id", "start"])
    times = rows.column("start")
    kept = pc.and_(
        pc.greater_equal(times, pa.scalar(begin, pa.int64())), pc.less(times, pa.scalar(end, pa.int64()))
    )
    numbers = rows.column("id").filter(kept).to_numpy()
    processes = numbers // _API_ROWS_PER_PROCESS
    of = {int(process): numbers[processes == process] for process in np.unique(processes)}
    return [(process, int(mine.min()), int(mine.max())) for process, mine in of.items()]
