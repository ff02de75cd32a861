"""NVTX ranges in the terminal timeline.

Those of threads from the index where the report is large, all others in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.occupancy import Window, cells, tracks
from warplens.errors import ReportError
from warplens.report.selection import overlap
from warplens.storage.manifest import is_large
from warplens.timeline.index import building
from warplens.timeline.lanes import Lane, Lanes

if TYPE_CHECKING:
    from warplens.report import Report
    from warplens.timeline.index import Cells

Rows = list[dict[str, Any]]
_KINDS = ("push_pop", "start_end")  # the index has the ranges of all tasks of a process on one track


def lanes_of(report: Report) -> Lanes | None:
    """Return the index of a large, complete report; None: SQL answers."""
    if not report.windowed and is_large(sum(building.events(part.manifest) for part in report.stored.parts)):
        from warplens.flows.viewing import index_cache

        try:
            return Lanes.open(report.stored, index_cache())
        except ReportError:
            pass  # SQL says what is wrong with the tables, if anything is
    return None


class Ranges:
    """The ranges of a report, asked in SQL.

    Small reports are asked so, too: that takes no longer and writes no index.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    def tracks(self, window: Window) -> Rows:
        """Return the tracks as `occupancy.tracks` does."""
        rows: Rows = tracks(self.report, window).to_pylist()
        return rows

    def cells(
        self, window: Window, columns: int, depth: int, threads: Sequence[int], tasks: Sequence[int]
    ) -> Rows:
        """Return the cells of some threads and tasks, and of all start/end ranges.

        As `occupancy.cells` does.
        """
        rows: Rows = cells(
            self.report, window, columns, depth=depth, threads=threads, tasks=tasks
        ).to_pylist()
        return rows


class IndexedRanges(Ranges):
    """The same, those of threads and start/end ranges from the index: its lanes are the depths of nesting."""

    def __init__(self, report: Report, lanes: Lanes) -> None:
        super().__init__(report)
        self._tracks = [lane for lane in lanes.of_layer("nvtx_ranges") if lane.key.get("kind") in _KINDS]
        self._lanes = lanes

    def tracks(self, window: Window) -> Rows:
        """Return the tracks with ranges in the window, and the time of the outermost ranges of each."""
        begin, end = window
        rows: Rows = (
            tracks(self.report, window, "task IS NOT NULL").to_pylist() if self.report.tables["tasks"] else []
        )
        own = {lane.number: lane for lane in self._tracks}
        deepest = self._lanes.deepest(own, begin, end)
        for number, (share, events) in self._lanes.busy(own, begin, end).items():
            if number in deepest:
                lane, took = own[number], round(share * (end - begin))
                place = {"process": lane.process, "thread": lane.key.get("thread"), "task": None}
                rows.append({**place, "ranges": events, "lanes": deepest[number] + 1, "busy": took})
        return rows

    def cells(
        self, window: Window, columns: int, depth: int, threads: Sequence[int], tasks: Sequence[int]
    ) -> Rows:
        """Return the cells of threads and start/end ranges from the index, those of tasks in SQL."""
        rows: Rows = (
            cells(
                self.report, window, columns, depth=depth, threads=[], tasks=tasks, where="task IS NOT NULL"
            ).to_pylist()
            if tasks
            else []
        )
        wanted, unfinished = set(threads), self._unfinished(window, columns)
        drawn: list[tuple[Lane, int, Cells]] = []
        for lane in self._tracks:
            thread = lane.key.get("thread")
            levels = range(min(depth, lane.lanes)) if thread is None or thread in wanted else ()
            drawn += [(lane, level, self._lanes.cells([lane], window, columns, level)) for level in levels]
        about = self._about([(lane, columns_of_lane) for lane, _, columns_of_lane in drawn])
        for lane, level, columns_of_lane in drawn:
            rows += _rows(lane, level, columns_of_lane, about=about, unfinished=unfinished)
        return rows

    def _about(self, drawn: list[tuple[Lane, Cells]]) -> dict[int, dict[str, Any]]:
        """Return domain, name and color of the longest range of each cell, by its id."""
        each = [lane.process << 32 | columns_of_lane.row.astype(np.int64) for lane, columns_of_lane in drawn]
        if not each:
            return {}
        ids = np.unique(np.concatenate(each)).tolist()
        text = (
            "SELECT id, domain, message, color FROM nvtx_ranges JOIN (SELECT unnest($ids) AS id) USING (id)"
        )
        return {row["id"]: row for row in self.report.sql(text, {"ids": ids}).to_pylist()} if ids else {}

    def _unfinished(self, window: Window, columns: int) -> set[tuple[int, int | None, int, str | None, int]]:
        """Return the columns that unfinished ranges touch: process, thread, depth, name, column."""
        begin, end = window
        text = f"""SELECT process, CASE WHEN style <> 'StartEnd' THEN thread END AS thread, depth, message, "start", "end"
                   FROM nvtx_ranges WHERE unfinished AND task IS NULL AND {overlap(begin, end)}"""
        touched = set()
        for row in self.report.sql(text).to_pylist():
            first, last = max(row["start"], begin), max(min(row["end"], end) - 1, row["start"], begin)
            columns_of = ((time - begin) * columns // (end - begin) for time in (first, last))
            for column in range(next(columns_of), next(columns_of) + 1):
                touched.add((row["process"], row["thread"], row["depth"], row["message"], column))
        return touched


def _rows(
    lane: Lane, level: int, columns_of_lane: Cells, about: dict[int, dict[str, Any]], unfinished: set[Any]
) -> Rows:
    place = {"process": lane.process, "thread": lane.key.get("thread"), "task": None, "depth": level}
    rows = []
    columns = (
        columns_of_lane.column,
        columns_of_lane.busy,
        columns_of_lane.number,
        columns_of_lane.begun,
        columns_of_lane.row,
    )
    for column, busy, number, begun, row in zip(*(each.tolist() for each in columns), strict=True):
        facts = about[lane.process << 32 | row]
        is_open = (lane.process, place["thread"], level, facts["message"], column) in unfinished
        top = {**facts, "begun": begun, "unfinished": is_open}
        rows.append({**place, "col": column, "busy": busy, "number": number, "top": top})
    return rows
