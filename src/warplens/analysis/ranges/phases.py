"""Selects the CPU side of one phase of a program: the time that threads spend in NVTX ranges of a name.

Of the CPU side, `--filter-nvtx NAME` means all ranges of that name, or the one whose index is given, each on its own thread: that is the
profile of a phase. (What GPUs did, and other ranges, are filtered by the time of one range; see `Selection.window`.) A range that began on
one thread and ended on another stands for all threads of its process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.report.selection import named, overlap

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection


def chosen(report: Report, selection: Selection, table: str) -> str:
    """Return the SQL relation (in parentheses) of the rows of a table that overlap the selection.

    They keep their whole length.
    """
    if selection.nvtx is None:
        window = selection.window(report)
        return f"(SELECT * FROM {table}{'' if window is None else f' WHERE {overlap(*window)}'})"
    return f"""(WITH spans AS MATERIALIZED {spans(report, selection)}
        SELECT row.* FROM (SELECT * FROM {table} WHERE thread IN (SELECT thread FROM spans)) AS row
        ASOF JOIN spans ON row.thread = spans.thread AND greatest(row."end" - 1, row."start") >= spans.first
        WHERE spans.last > row."start")"""


def pieces(report: Report, selection: Selection, table: str) -> str:
    """Return the relation of those rows with two more columns: how much of each lies in the selection.

    `inside`: ns; `part`: the share of the row, from 0 to 1 (1 for one without duration).
    """
    if selection.nvtx is None:
        window = selection.window(report)
        inside = (
            '"end" - "start"'
            if window is None
            else f'least("end", {window[1]}) - greatest("start", {window[0]})'
        )
        return (
            f"(SELECT *, {_PART} FROM (SELECT *, {inside} AS inside FROM {chosen(report, selection, table)}))"
        )
    # The time in spans before a moment t is F(t) = before + min(t, last) - first, of the last span
    # that begins before t; 0 if none does. A row has F(end) - F(start) inside. With the spans [0,
    # 7) and [9, 10), the row [5, 12) has 8 - 5 = 3 ns inside.
    covered = "coalesce({0}.before + least(row.{1}, {0}.last) - {0}.first, 0)"
    return f"""(WITH spans AS MATERIALIZED {spans(report, selection)}
        SELECT *, {_PART} FROM (
          SELECT row.*, {covered.format("late", '"end"')} - {covered.format("early", '"start"')} AS inside
          FROM {chosen(report, selection, table)} AS row
          ASOF LEFT JOIN spans AS early ON row.thread = early.thread AND row."start" >= early.first
          ASOF LEFT JOIN spans AS late ON row.thread = late.thread AND row."end" >= late.first))"""


def said(report: Report, selection: Selection) -> str:
    """Return a sentence about the ranges that were looked at.

    Empty if no range was requested.
    """
    if selection.nvtx is None:
        return ""
    counts = report.sql(
        f"SELECT count(*) AS ranges, count(DISTINCT thread) AS threads FROM {_ranges(report, selection)}"
    ).to_pylist()[0]
    ranges, threads = counts["ranges"], counts["threads"]
    return (
        f"of what threads did inside {ranges:,} range{'s' if ranges != 1 else ''} {selection.nvtx[0]!r} "
        f"({threads:,} thread{'s' if threads != 1 else ''})."
    )


_PART = 'coalesce(inside / nullif("end" - "start", 0), 1.0) AS part'


def _ranges(report: Report, selection: Selection) -> str:
    """Return the relation of the ranges: thread, start, end, cut to the requested time.

    MissingData if there is none.
    """
    selection.window(report)  # says what is wrong with the name
    assert selection.nvtx is not None
    index = selection.nvtx[2]
    nth = "" if index is None else f' ORDER BY "start", id LIMIT 1 OFFSET {index}'
    first, last = 'r."start"', 'r."end"'
    if selection.time is not None:
        begin, end = (report.origin + edge for edge in selection.time)
        first, last = f"greatest({first}, {begin})", f"least({last}, {end})"
    return f"""(SELECT * FROM (
        SELECT coalesce(t.thread, r.thread) AS thread, {first} AS "start", {last} AS "end"
        FROM (SELECT * FROM nvtx_ranges WHERE {named(selection.nvtx)}{nth}) r
        LEFT JOIN threads t ON r.end_thread <> r.thread AND r.process = t.process) WHERE "start" < "end")"""


def spans(report: Report, selection: Selection) -> str:
    """Return the relation of times in which threads were in those ranges.

    Columns: thread, first, last (disjoint), before (ns in earlier ones).
    """
    # A range begins a new island if it starts after everything before it has ended: [0, 5), [3, 7),
    # [9, 10) have reach NULL, 5, 7, so 9 > 7 starts the second island. Counting such starts numbers
    # the islands, and each island is one span. `before` is the running sum of the spans' lengths.
    reach = 'max("end") OVER (PARTITION BY thread ORDER BY "start", "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)'
    return f"""(
        WITH edges AS (SELECT *, {reach} AS reach FROM {_ranges(report, selection)}),
        islands AS (
          SELECT *, count(*) FILTER (WHERE reach IS NULL OR "start" > reach)
            OVER (PARTITION BY thread ORDER BY "start", "end" ROWS UNBOUNDED PRECEDING) AS island FROM edges),
        spans AS (SELECT thread, min("start") AS first, max("end") AS last FROM islands GROUP BY thread, island)
        SELECT *, coalesce(sum(last - first) OVER (PARTITION BY thread ORDER BY first
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::BIGINT AS before FROM spans)"""
