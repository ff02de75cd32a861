"""Joins the collectives of several ranks: no rank leaves one before all have arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.critical_path.dag import UNKNOWN
from warplens.analysis.critical_path.parts import COLLECTIVE, WORK, GraphBuilder
from warplens.analysis.critical_path.recorded import OPERATIONS, RecordedWork, Window, positions
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report


def joined(report: Report, window: Window | None, work: RecordedWork) -> tuple[Int64Array, Int64Array]:
    """Return rows of `work` that are kernels of a collective of several processes, and its number.

    Kernels of which one ended before the last one began are left out: the clocks of these ranks do not agree.
    """
    nothing = np.empty(0, np.int64)
    if not report.tables["collectives"]:
        return nothing, nothing
    # Kernels belong to one collective when name, group and sequence number agree. A number that a process uses again counts as the next
    # occurrence. Collectives of which only one kernel is in the report join nothing.
    rows = report.sql(
        """SELECT kernel, dense_rank() OVER (ORDER BY name, "group", sequence, occurrence) - 1 AS joined FROM (
             SELECT *, row_number() OVER (PARTITION BY process, name, "group", sequence ORDER BY "start") AS occurrence FROM collectives
             WHERE kernel IS NOT NULL AND sequence IS NOT NULL AND "group" IS NOT NULL)
           QUALIFY count(*) OVER (PARTITION BY name, "group", sequence, occurrence) > 1 ORDER BY kernel"""
    )
    kernel, number = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("kernel", "joined"))
    is_kernel = np.flatnonzero(work.columns["table"] == OPERATIONS.index("kernels"))
    order = is_kernel[np.argsort(work.columns["id"][is_kernel], kind="stable")]
    place = positions(work.columns["id"][order], kernel)
    row, number = order[place[place >= 0]], number[place >= 0]
    groups, number = np.unique(number, return_inverse=True)
    latest, earliest = np.full(len(groups), UNKNOWN), np.full(len(groups), np.iinfo(np.int64).max)
    np.maximum.at(latest, number, work.columns["start"][row])
    np.minimum.at(earliest, number, work.columns["end"][row])
    several = np.bincount(number, minlength=len(groups)) > 1 if len(groups) else np.zeros(0, bool)
    # All members must run at the same time at some moment: the earliest end lies behind the latest start.
    kept = (several & (earliest >= latest))[number] if len(groups) else np.zeros(0, bool)
    return row[kept], np.unique(number[kept], return_inverse=True)[1] if kept.any() else nothing


def add(
    rows: Int64Array,
    number: Int64Array,
    work: RecordedWork,
    begin: Int64Array,
    end: Int64Array,
    builder: GraphBuilder,
    things: int,
) -> None:
    """Add for each collective a point at which all have come.

    What each kernel takes counts from there.
    """
    if not len(rows):
        return
    latest = np.full(int(number.max()) + 1, UNKNOWN)
    np.maximum.at(latest, number, work.columns["start"][rows])
    meet = builder.add_points(np.full(len(latest), UNKNOWN))
    # begin of each member -> meeting point -> end of each member. A member that came early gets no weight for its waiting.
    builder.add_edges(begin[rows], meet[number], 0, kind=COLLECTIVE, thing=NOTHING)
    builder.add_edges(
        meet[number], end[rows], work.columns["end"][rows] - latest[number], kind=WORK, thing=things + rows
    )
