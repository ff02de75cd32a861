"""Aggregates ranges into the columns of a timeline in SQL.

So the cost of drawing does not grow with the ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from warplens.report.quoting import listed
from warplens.report.selection import overlap

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report

Window = tuple[int, int]
_FEW_ROWS, _MANY_ROWS = 1 << 19, 1 << 21

# A track is a task, a thread (push/pop ranges) or, where both are null, a process (start/end ranges).
_INSIDE = overlap("{begin}", "{end}")
_THREAD = "CASE WHEN task IS NOT NULL OR style = 'StartEnd' THEN NULL ELSE thread END"

_TRACKS = f"""
SELECT process, {_THREAD} AS thread, task, count(*) AS ranges, max(depth) + 1 AS lanes,
       sum(CASE WHEN depth = 0 THEN least("end", {{end}}) - greatest("start", {{begin}}) ELSE 0 END)::BIGINT AS busy
FROM nvtx_ranges WHERE {_INSIDE} AND {{where}} GROUP BY ALL ORDER BY ALL
"""

# Ranges within one column are summed up as they are; only those that reach over an edge, at most one per column and lane and
# side, are spread over the columns they touch.
# `shown`: each range cut to the window, with its first and last column (c0, c1). `pieces`: one row per range and column that it touches.
_PIECES = f"""
WITH shown AS (
  SELECT id, process, {_THREAD} AS thread, task, depth, domain, message, color, unfinished,
         greatest("start", {{begin}}) AS first, greatest(least("end", {{end}}), greatest("start", {{begin}})) AS last,
         ((greatest("start", {{begin}}) - {{begin}}) * {{columns}}) // {{length}} AS c0,
         ((greatest(least("end", {{end}}) - 1, greatest("start", {{begin}})) - {{begin}}) * {{columns}}) // {{length}} AS c1
  FROM {{source}} WHERE {_INSIDE} AND {{part}} AND depth < {{depth}} {{only}}
),
pieces AS (
  SELECT process, thread, task, depth, c0 AS col, domain, message, (last - first)::DOUBLE AS time, id, color, unfinished, 1 AS begun
  FROM shown WHERE c0 = c1
  UNION ALL
  SELECT process, thread, task, depth, col, domain, message,
         least(last - {{begin}}, (col + 1) * {{width}}) - greatest(first - {{begin}}, col * {{width}}) AS time, id, color, unfinished,
         (col = c0)::INTEGER AS begun
  FROM (SELECT *, unnest(range(c0, c1 + 1)) AS col FROM shown WHERE c0 < c1)
)"""

# Two steps: time per name in a cell, then per cell the sum and the name with the most time.
_CELLS = f"""{_PIECES},
names AS (
  SELECT process, thread, task, depth, col, domain, message, sum(time) AS time, count(*) AS number, sum(begun) AS begun,
         max_by(id, time) AS id, any_value(color) AS color, bool_or(unfinished) AS unfinished
  FROM pieces WHERE {{columns_of_part}} GROUP BY ALL
)
SELECT process, thread, task, depth, col::INTEGER AS col, least(sum(time) / {{width}}, 1.0) AS busy, sum(number)::BIGINT AS number,
       max_by({{{{'domain': domain, 'message': message, 'id': id, 'color': color, 'unfinished': unfinished, 'begun': begun}}}}, time) AS top
FROM names GROUP BY ALL ORDER BY process, thread, task, depth, col
"""

# The average number of tasks that are in a range at once, per thread and column: time in ranges by the width of the column.
_CROWD = f"""{_PIECES}
SELECT t.process, t.thread, p.col::INTEGER AS col, sum(p.time) / {{width}} AS number
FROM pieces p JOIN tasks t ON t.task = p.task GROUP BY ALL ORDER BY ALL
"""

_MARKS = """
SELECT process, CASE WHEN task IN ({tasks}) THEN NULL ELSE thread END AS thread, CASE WHEN task IN ({tasks}) THEN task END AS task,
       (("start" - {begin}) * {columns}) // {length} AS col, count(*) AS number, first(message ORDER BY "start") AS message
FROM nvtx_marks WHERE "start" >= {begin} AND "start" < {end} GROUP BY ALL ORDER BY ALL
"""


def tracks(report: Report, window: Window, where: str = "true") -> pa.Table:
    """Return the tracks with ranges in the window: process, thread, task, ranges, lanes, busy (ns of lane 0).

    A task's ranges have no thread here; start/end ranges without a task have neither. `where`: a condition, in SQL, for ranges.
    """
    begin, end = window
    return report.sql(_TRACKS.format(begin=begin, end=end, where=where))


def cells(
    report: Report,
    window: Window,
    columns: int,
    depth: int,
    threads: Sequence[int] | None = None,
    tasks: Sequence[int] | None = None,
    where: str = "true",
) -> pa.Table:
    """Return a row per column of each lane that holds something.

    Args:
        report: the report.
        window: begin and end in ns on the report's clock; begin < end.
        columns: into how many columns the window is cut.
        depth: lanes from this one on are left out.
        threads: keys of the threads wanted (None: all); start/end ranges are always there.
        tasks: keys of the tasks wanted (None: all).
        where: a condition, in SQL, for ranges.

    Returns:
        process, thread and task (see `tracks`), depth, col, busy (share of the column's time, 0 to 1), number (of ranges that touch
        it), top: of the name with the most time there its domain, message and color, the id of its longest range, whether one is
        unfinished, and how many begin in the column.
    """
    only = f" AND {where}"
    if threads is not None:
        only += f" AND (task IS NOT NULL OR style = 'StartEnd' OR thread IN ({listed(threads)}))"
    if tasks is not None:
        only += f" AND (task IS NULL OR task IN ({listed(tasks)}))"
    import pyarrow as pa

    # Columns do not depend on each other: some at a time, so that memory does not grow with the ranges.
    rows = report.tables["nvtx_ranges"]
    pieces = min(
        columns, -(-rows // _FEW_ROWS) or 1, 8 + rows // _MANY_ROWS
    )  # a file is read in pieces larger than that: not too many
    edges = [columns * piece // pieces for piece in range(pieces + 1)]
    parts = [
        cells_of(report, "nvtx_ranges", window, columns=columns, only=only, depth=depth, part=part)
        for part in pairwise(edges)
    ]
    lanes = pa.concat_tables(parts)
    return (
        lanes.sort_by([(name, "ascending") for name in ("process", "thread", "task", "depth", "col")])
        if pieces > 1
        else lanes
    )


def cells_of(
    report: Report,
    source: str,
    window: Window,
    columns: int,
    only: str,
    depth: int = 1,
    part: tuple[int, int] | None = None,
) -> pa.Table:
    """Return `cells` of any SQL relation with the needed columns of `nvtx_ranges`.

    `only`: `AND …`, or nothing.

    `part`: from which column on, and behind which, cells are wanted; None: all.
    """
    inside, cells_in = "true", "true"
    if part is not None and part != (0, columns):
        length = window[1] - window[0]
        # A column's edges lie between nanoseconds: one more on either side is left out by its column.
        inside = overlap(
            window[0] + part[0] * length // columns - 1, window[0] + part[1] * length // columns + 1
        )
        cells_in = f"col >= {part[0]} AND col < {part[1]}"
    numbers = _numbers(window, columns)
    return report.sql(
        _CELLS.format(**numbers, source=source, depth=depth, only=only, part=inside, columns_of_part=cells_in)
    )


def crowd(report: Report, window: Window, columns: int, but: Sequence[int]) -> pa.Table:
    """Return the number of tasks with an open range.

    Columns: process, thread (where the tasks were first seen), col, number (the mean over the
    column).

    The tasks `but` do not count.
    """
    only = f"AND task IS NOT NULL AND task NOT IN ({listed(but)})" if but else "AND task IS NOT NULL"
    return report.sql(
        _CROWD.format(**_numbers(window, columns), source="nvtx_ranges", depth=1, only=only, part="true")
    )


def mark_cells(report: Report, window: Window, columns: int, tasks: Sequence[int] = ()) -> pa.Table:
    """Return a row per column with marks: process, thread, task, col, number, message (of the first).

    Marks of `tasks` have their task and no thread; those of other tasks count for their thread.
    """
    return report.sql(_MARKS.format(**_numbers(window, columns), tasks=listed(tasks)))


def _numbers(window: Window, columns: int) -> dict[str, int | str]:
    begin, end = window
    length = end - begin
    return {"begin": begin, "end": end, "length": length, "columns": columns, "width": repr(length / columns)}
