"""In-Kernel Regions over Time.

## What it shows
The course of one launch: for each slice of its time, the number of units (recording warps) in each
region. It shows the prologue that nothing overlaps, the steady part and the tail.

## Columns
- Start (ns): start of the slice, since the start of the launch. Duration (ns): length of the slice.
- Active: units in a region with this tag, averaged over the slice; a unit in two such regions at
  once counts twice.
- Active (%): Active as a share of Running.
- Units: units that were in such a region at any time of the slice.
- Running: units between their begin and end, averaged over the slice.
- Launch: id in `intrakernel_launches`. Kernel: as in intrakernel_sum. Tag: name of the region.

## How it is computed
For one launch: the longest of those that overlap the selected time, or `:launch=ID`. Its time is
divided into `:slices=` of equal length. A region that crosses an edge counts in both slices, each
with its part. A tag that is not active in a slice has no row there.

## Traps
- Regions nest: `tile` is active while the `load` inside it is.
- Marks have no duration and no row.
- Slices shorter than a few hundred ns show the ticks of the timer (32 ns on Hopper and later).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.intrakernel.launches import launches
from warplens.analysis.intrakernel.slices import active, at_once
from warplens.errors import MissingData, UsageError
from warplens.stats.base import noted
from warplens.stats.intrakernel import exactness, missing

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_MOST = 10_000


def table(report: Report, selection: Selection, *, launch: int = -1, slices: int = 20) -> pa.Table:
    """Return the slices; raises MissingData if the launch recorded no region.

    Args:
        report: the report.
        selection: the part to use.
        launch: id in `intrakernel_launches`; -1: the longest one.
        slices: number of equal slices of its time.
    """
    if not 1 <= slices <= _MOST:
        raise UsageError(f"`:slices={slices}` is not a number of slices; use 1 to {_MOST:,}.")
    recorded = launches(report, selection)
    at = (
        int(np.argmax(recorded.end - recorded.start))
        if launch == -1
        else int(np.searchsorted(recorded.id, launch))
    )
    if at >= len(recorded) or (launch != -1 and recorded.id[at] != launch):
        raise UsageError(
            f"`:launch={launch}` is not a launch{selection.place(report)}; intrakernel_imbalance lists them."
        )
    begin, end = int(recorded.start[at]), max(int(recorded.end[at]), int(recorded.start[at]) + 1)
    edges = begin + np.arange(slices + 1) * (end - begin) // slices
    length = np.maximum(np.diff(edges), 1)
    running, seen = at_once(report, int(recorded.id[at]), edges), active(report, int(recorded.id[at]), edges)
    rows = [
        (piece, tag, float(spent[piece]) / float(length[piece]), int(number[piece]))
        for piece in range(slices)
        for tag, (spent, number) in sorted(seen.items())
        if number[piece]
    ]
    if not rows:
        raise MissingData(f"has no regions in the launch {int(recorded.id[at])}{selection.place(report)}.")
    piece = np.array([row[0] for row in rows], np.int64)
    mean = np.array([row[2] for row in rows])
    there = (running / length)[piece]
    columns = {
        "Start (ns)": pa.array(edges[piece] - begin),
        "Duration (ns)": pa.array(np.diff(edges)[piece]),
        "Active": pa.array(mean),
        "Active (%)": pa.array(100.0 * mean / np.where(there > 0, there, 1.0)),
        "Units": pa.array([row[3] for row in rows], pa.int64()),
        "Running": pa.array(there),
        "Launch": pa.array(np.full(len(rows), int(recorded.id[at]))),
        "Kernel": pa.array([recorded.name(at)] * len(rows), pa.string()),
        "Tag": pa.array([row[1] for row in rows], pa.string()),
    }
    return noted(pa.table(columns), missing(recorded), exactness(recorded))
