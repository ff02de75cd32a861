"""Shared by traces of NVTX ranges: each range's place among the others, in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import Int64Array
from warplens.report.columns import integers
from warplens.report.cutting import overlaps

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_COLUMNS = (
    "id",
    "process",
    "thread",
    "end_thread",
    "start",
    "end",
    "domain",
    "message",
    "style",
    "parent",
    "task",
    "payload_int",
    "payload_float",
    "unfinished",
)


@dataclass(frozen=True)
class Traced:
    """The ranges of one style in the selected part, sorted by start.

    `rows` has the columns of `nvtx_ranges` and what follows.

    `level`: how many ranges enclose it. `stack`: ids from the outermost range to this one, each after a colon. `number`, `time`: how
    many ranges of the style are directly inside it, and how many ns they last. A selection leaves rows out, but not out of these.
    """

    rows: pa.Table
    unfinished: int


def traced(report: Report, selection: Selection, style: str) -> Traced:
    """Find the ranges of one style, each with its place in the nesting of all ranges."""
    window = selection.window(report)
    table = report.table("nvtx_ranges", _COLUMNS)
    ids, starts = integers(table, "id"), integers(table, "start")
    order = np.lexsort((ids, integers(table, "process"), starts))
    of_style = pc.equal(pc.cast(table.column("style"), pa.string()), style).combine_chunks()
    above = pc.fill_null(
        pc.index_in(table.column("parent"), value_set=table.column("id").combine_chunks()), -1
    )
    nest = Nest.of(np.asarray(above, np.int64), ids)
    inside = np.asarray(of_style) & (nest.above >= 0)
    length = integers(table, "end") - starts
    # `number` and `time`: how many direct children each range has, and their time together.
    number, time = np.bincount(nest.above[inside], minlength=len(ids)), np.zeros(len(ids), np.int64)
    np.add.at(time, nest.above[inside], length[inside])
    wanted = of_style if window is None else pc.and_(of_style, overlaps(table, window).combine_chunks())
    kept = order[np.asarray(wanted)[order]]
    rows = table.take(kept)
    for name, values in (
        ("level", pa.array(nest.level[kept].astype(np.int32))),
        ("stack", nest.stacks(kept)),
        ("number", pa.array(number[kept])),
        ("time", pa.array(time[kept])),
    ):
        rows = rows.append_column(name, values)
    return Traced(rows, pc.sum(rows.column("unfinished")).as_py() or 0)


def system_ids(report: Report, rows: pa.Table, table: str, column: str, key: str | None = None) -> pa.Array:
    """Return for each row the `column` of the `table` row that its key names; null: none.

    `table`: processes, threads, tasks; `column`: pid, tid, name, …
    """
    singular = {"processes": "process", "threads": "thread", "tasks": "task"}[table]
    known = report.table(table, [singular, column])
    places = pc.index_in(rows.column(key or singular), value_set=known.column(singular).combine_chunks())
    return known.column(column).combine_chunks().take(places.combine_chunks())


class Nest:
    """Goes through the ranges from the outermost inwards.

    `above` has the position of each one's parent, -1 for none.
    """

    def __init__(
        self, above: Int64Array, level: Int64Array, ids: Int64Array, levels: list[Int64Array]
    ) -> None:
        """`level`: how many ranges are around each one; `levels`: the positions of those of each level."""
        self.above, self.level, self._ids, self._levels = above, level, ids, levels

    @classmethod
    def of(cls, above: Int64Array, ids: Int64Array) -> Nest:
        """Go through ranges with these parents and ids."""
        level = np.full(len(above), -1, np.int64)
        levels: list[Int64Array] = []
        children = np.argsort(above, kind="stable")
        first = np.searchsorted(above[children], np.arange(len(above) + 1))
        level_rows = children[: first[0]]
        while len(level_rows):
            level[level_rows] = len(levels)
            levels.append(level_rows)
            begin, counts = first[level_rows], first[level_rows + 1] - first[level_rows]
            # The children of all ranges of this level: runs [begin, begin + count) of `children`, one after the other.
            level_rows = children[
                np.repeat(begin - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
            ]
        lost = np.flatnonzero(level < 0)  # parents in a circle: no report of ours, but no reason to fail
        if len(lost):
            above = np.where(level < 0, -1, above)
            level[lost] = 0
            levels[:1] = [np.concatenate([*levels[:1], lost])]
        return cls(above, level, ids, levels=levels)

    def stacks(self, wanted: Int64Array) -> pa.Array:
        """Return the ids from the outermost range to each one wanted, each after a colon."""
        needed = np.zeros(len(self.above), bool)
        needed[wanted] = True
        # From the innermost level outwards, each needed range needs its parent.
        for level_rows in reversed(self._levels[1:]):
            needed[self.above[level_rows[needed[level_rows]]]] = True
        colon = pa.scalar(":", pa.large_string())
        pieces: list[pa.Array] = []
        place = np.zeros(len(self.above), np.int64)  # of each range within its level, then among all pieces
        for number, level_rows in enumerate(self._levels):
            kept = level_rows[needed[level_rows]]
            own = pc.cast(pa.array(self._ids[kept]), pa.large_string())
            # The text of a range is its parent's text and its own id, so each level costs one join, whatever the depth.
            heads = (
                pieces[-1].take(pa.array(place[self.above[kept]]))
                if number
                else pa.scalar("", pa.large_string())
            )
            pieces.append(pc.binary_join_element_wise(heads, own, colon))
            place[kept] = np.arange(len(kept))
        for first, level_rows in zip(np.cumsum([0, *map(len, pieces)]), self._levels, strict=False):
            place[level_rows] += first
        return (
            pa.concat_arrays(pieces).take(pa.array(place[wanted]))
            if pieces
            else pa.array([], pa.large_string())
        )
