"""Regions inside kernels for a picture: launches, their warps, and the regions and marks of each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warplens.analysis.occupancy import Window, cells_of
from warplens.report.quoting import listed
from warplens.report.selection import overlap

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report

# How many regions of the warp are open where one begins is its lane; asynchronous ones cross the others, so they are below them.
# Each region becomes two edges, +1 at its begin and -1 at its end. The running sum at a begin,
# minus 1, is the number of regions that were open: its lane. At one time, ends come before begins.
_REGIONS = """(
  SELECT id, process, thread, NULL::BIGINT AS task, domain, message, NULL::UINTEGER AS color, false AS unfinished, 'PushPop' AS style,
         (own + CASE WHEN apart THEN coalesce(max(own) FILTER (NOT apart) OVER (PARTITION BY thread), -1) + 1 ELSE 0 END)::INTEGER AS depth,
         "start", "end"
  FROM (SELECT *, sum(edge) OVER (PARTITION BY thread, apart ORDER BY time, edge, "end" DESC, id ROWS UNBOUNDED PRECEDING) - 1 AS own
        FROM (SELECT id, process, unit AS thread, NULL::VARCHAR AS domain, tag::VARCHAR AS message, kind = 'asynchronous' AS apart,
                     "start", "end", unnest(["start", "end"]) AS time, unnest([1, -1]) AS edge
              FROM intrakernel_events WHERE unit IN ({units}) AND kind <> 'mark' AND "end" > "start"))
  WHERE edge = 1)"""


def inside_launches(report: Report, window: Window | None, name: str = "") -> list[dict[str, Any]]:
    """Return the launches that recorded inside: rows of `intrakernel_launches`, the longest first.

    `window`: ns on the report's clock, None: the whole report; `name`: a part of the launch's name.
    """
    if not report.tables["intrakernel_launches"]:
        return []
    within = f" AND {overlap(*window)}" if window is not None else ""
    launches: list[dict[str, Any]] = report.sql(
        f"""SELECT id, process, name, generation, device, stream, units, "start", "end" FROM intrakernel_launches
            WHERE units > 0 AND contains(lower(coalesce(name, 'kernel')), lower($name)){within}
            ORDER BY "end" - "start" DESC, id""",
        {"name": name},
    ).to_pylist()
    return launches


def inside_warps(report: Report, launch: int, window: Window, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the warps of a launch that ran longest in the window, and the number left out.

    By SM, block and number.
    """
    rows = report.sql(
        f"""SELECT id, process, cta, warp, sm, count(*) OVER () AS number FROM intrakernel_units
            WHERE launch = $launch AND {overlap(*window)} ORDER BY "end" - "start" DESC, id LIMIT {int(most)}""",
        {"launch": launch},
    ).to_pylist()
    hidden = rows[0]["number"] - len(rows) if rows else 0
    return sorted(rows, key=lambda row: (row["sm"], row["cta"], row["warp"])), hidden


def region_cells(report: Report, window: Window, columns: int, units: Sequence[int], depth: int) -> pa.Table:
    """Return `occupancy.cells` for the regions of warps; `thread` has the keys of the warps."""
    return cells_of(
        report, _REGIONS.format(units=listed(units)), window, columns=columns, only="", depth=depth
    )


def region_lanes(report: Report, units: Sequence[int]) -> dict[int, int]:
    """Return the number of lanes that the regions of each warp need."""
    rows = report.sql(
        f"SELECT thread, max(depth) + 1 AS lanes FROM {_REGIONS.format(units=listed(units))} GROUP BY thread"
    )
    return {row["thread"]: row["lanes"] for row in rows.to_pylist()}


def inside_marks(report: Report, window: Window, columns: int, units: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row for each column of a warp with marks: unit, col, number, name (of the first)."""
    begin, end = window
    marks: list[dict[str, Any]] = report.sql(
        f"""SELECT unit, ((("start" - {begin}) * {columns}) // {end - begin})::INTEGER AS col, count(*) AS number,
                   first(tag::VARCHAR ORDER BY "start") AS name
            FROM intrakernel_events WHERE unit IN ({listed(units)}) AND kind = 'mark' AND "start" >= {begin} AND "start" < {end}
            GROUP BY ALL ORDER BY ALL"""
    ).to_pylist()
    return marks
