"""What occupied each column of a timeline: aggregated in SQL, so that the cost of drawing does not grow with the ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpline.query.selection import overlap

if TYPE_CHECKING:
    import pyarrow as pa

    from warpline.query.report import Report

Window = tuple[int, int]

# A track is a thread (push/pop ranges) or, where `thread` is null, a process (start/end ranges).
_INSIDE = overlap("{begin}", "{end}")
_THREAD = "CASE WHEN style = 'StartEnd' THEN NULL ELSE thread END"

_TRACKS = f"""
SELECT process, {_THREAD} AS thread, count(*) AS ranges, max(depth) + 1 AS lanes,
       sum(CASE WHEN depth = 0 THEN least("end", {{end}}) - greatest("start", {{begin}}) ELSE 0 END)::BIGINT AS busy
FROM nvtx_ranges WHERE {_INSIDE} GROUP BY ALL ORDER BY ALL
"""

# Ranges within one column are summed up as they are; only those that reach over an edge, at most one per column and lane and
# side, are spread over the columns they touch.
_CELLS = f"""
WITH shown AS (
  SELECT id, process, {_THREAD} AS thread, depth, domain, message, color, unfinished,
         greatest("start", {{begin}}) AS first, greatest(least("end", {{end}}), greatest("start", {{begin}})) AS last,
         ((greatest("start", {{begin}}) - {{begin}}) * {{columns}}) // {{length}} AS c0,
         ((greatest(least("end", {{end}}) - 1, greatest("start", {{begin}})) - {{begin}}) * {{columns}}) // {{length}} AS c1
  FROM nvtx_ranges WHERE {_INSIDE} AND depth < {{depth}} {{only}}
),
pieces AS (
  SELECT process, thread, depth, c0 AS col, domain, message, (last - first)::DOUBLE AS time, id, color, unfinished, 1 AS begun
  FROM shown WHERE c0 = c1
  UNION ALL
  SELECT process, thread, depth, col, domain, message,
         least(last - {{begin}}, (col + 1) * {{width}}) - greatest(first - {{begin}}, col * {{width}}) AS time, id, color, unfinished,
         (col = c0)::INTEGER AS begun
  FROM (SELECT *, unnest(range(c0, c1 + 1)) AS col FROM shown WHERE c0 < c1)
),
names AS (
  SELECT process, thread, depth, col, domain, message, sum(time) AS time, count(*) AS number, sum(begun) AS begun,
         max_by(id, time) AS id, any_value(color) AS color, bool_or(unfinished) AS unfinished
  FROM pieces GROUP BY ALL
)
SELECT process, thread, depth, col::INTEGER AS col, least(sum(time) / {{width}}, 1.0) AS busy, sum(number)::BIGINT AS number,
       max_by({{{{'domain': domain, 'message': message, 'id': id, 'color': color, 'unfinished': unfinished, 'begun': begun}}}}, time) AS top
FROM names GROUP BY ALL ORDER BY process, thread, depth, col
"""

_MARKS = """
SELECT process, thread, (("start" - {begin}) * {columns}) // {length} AS col, count(*) AS number, first(message ORDER BY "start") AS message
FROM nvtx_marks WHERE "start" >= {begin} AND "start" < {end} {only} GROUP BY ALL ORDER BY ALL
"""


def tracks(report: Report, window: Window) -> pa.Table:
    """Return the tracks with ranges in the window: process, thread (null: start/end ranges), ranges, lanes, busy (ns of lane 0)."""
    begin, end = window
    return report.sql(_TRACKS.format(begin=begin, end=end))


def cells(report: Report, window: Window, columns: int, depth: int, threads: Sequence[int] | None = None) -> pa.Table:
    """Return a row per column of each lane that holds something.

    Args:
        report: the report.
        window: begin and end in ns on the report's clock; begin < end.
        columns: into how many columns the window is cut.
        depth: lanes from this one on are left out.
        threads: keys of the threads wanted (None: all); start/end ranges are always there.

    Returns:
        process, thread (null: start/end ranges), depth, col, busy (share of the column's time, 0 to 1), number (of ranges that touch
        it), top: of the name with the most time there its domain, message and color, the id of its longest range, whether one is
        unfinished, and how many begin in the column.
    """
    only = _only(threads, "style = 'StartEnd' OR")
    return report.sql(_CELLS.format(**_numbers(window, columns), depth=depth, only=only))


def mark_cells(report: Report, window: Window, columns: int, threads: Sequence[int] | None = None) -> pa.Table:
    """Return a row per column with marks: process, thread, col, number, message (of the first)."""
    return report.sql(_MARKS.format(**_numbers(window, columns), only=_only(threads, "")))


def _numbers(window: Window, columns: int) -> dict[str, int | str]:
    begin, end = window
    length = end - begin
    return {"begin": begin, "end": end, "length": length, "columns": columns, "width": repr(length / columns)}


def _only(threads: Sequence[int] | None, otherwise: str) -> str:
    if threads is None:
        return ""
    return f"AND ({otherwise} thread IN ({', '.join(str(int(key)) for key in threads) or 'NULL'}))"
