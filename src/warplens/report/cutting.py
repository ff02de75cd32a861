"""Cuts tables to one window of the capture: rows that overlap it, and only their share inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.model.tables import Table
    from warplens.report.asked import AskedReport

Window = tuple[int, int]
Calls = tuple[tuple[int, int], ...]  # ranges of ids of API calls
_MANY = 5
_EDGES = ("start", "end")
_EVENTS = {"range": "nvtx_ranges", "mark": "nvtx_marks", "sample": "nvtx_counter_samples"}


def overlaps(rows: pa.Table, window: Window) -> pa.ChunkedArray:
    """Say of each row whether it overlaps the window, as `selection.overlap` does in SQL.

    Rows have `start`, and perhaps `end`.
    """
    begin, end = (pa.scalar(edge, pa.int64()) for edge in window)
    start, last = (
        rows.column("start"),
        rows.column("end") if "end" in rows.column_names else rows.column("start"),
    )
    return pc.and_(pc.less(start, end), pc.or_(pc.greater(last, begin), pc.greater_equal(start, begin)))


def cut(rows: pa.Table, window: Window) -> pa.Table:
    """Return the rows that overlap the window, their times cut to it."""
    return clamped(rows.filter(overlaps(rows, window)), window)


def chosen(rows: pa.Table, window: Window, calls: Calls | None) -> pa.Table:
    """Return the rows of a piece that count.

    `calls`: those with such a call, whole, and of those without any the ones that overlap.
    """
    if calls is None:
        return cut(rows, window)
    api = rows.column("api")
    kept = pc.and_(pc.is_null(api), overlaps(rows, window))
    for first, behind in calls:
        within = pc.and_(
            pc.greater_equal(api, pa.scalar(first, pa.int64())), pc.less(api, pa.scalar(behind, pa.int64()))
        )
        kept = pc.or_kleene(kept, within)
    return rows.filter(kept)


def keys(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that decide which rows are in a window."""
    return (*table.edges, "api") if table.launched else table.edges


def clamped(rows: pa.Table, window: Window) -> pa.Table:
    """Return rows that overlap the window, with their times cut to it.

    Spread values get their share.
    """
    before = rows
    for name, limit, choose in (
        ("start", window[0], pc.max_element_wise),
        ("end", window[1], pc.min_element_wise),
    ):
        if name in rows.column_names:
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(
                index, rows.schema.field(index), choose(rows.column(index), pa.scalar(limit, pa.int64()))
            )
    for index, item in enumerate(rows.schema):
        if b"spread" in (item.metadata or {}):
            rows = rows.set_column(index, item, _shares(rows.column(index), before, rows).cast(item.type))
    return rows


def share(value: str, inside: str, length: str) -> str:
    """Return the SQL expression for what of `value` belongs to `inside` ns of `length`.

    All of it if there is no length.
    """
    return f"CAST(round({value} * coalesce(({inside}) / nullif({length}, 0), 1.0)) AS BIGINT)"


def _shares(values: pa.ChunkedArray, before: pa.Table, after: pa.Table) -> pa.ChunkedArray:
    length, inside = (
        pc.cast(pc.subtract(rows.column("end"), rows.column("start")), pa.float64())
        for rows in (before, after)
    )
    part = pc.coalesce(pc.divide(inside, pc.if_else(pc.equal(length, 0.0), None, length)), pa.scalar(1.0))
    return pc.round(
        pc.multiply(pc.cast(values, pa.float64(), safe=False), part), round_mode="half_towards_infinity"
    )


def windows(report: AskedReport, number: int) -> dict[int, Window]:
    """Return begin and end (ns, the report's clock) of window `number` in each part that has it.

    Raises MissingData, which lists those that there are.
    """
    rows = report.table("capture_windows").to_pylist()
    spans = {
        row["part"]: (row["start"], max(row["end"], row["start"])) for row in rows if row["number"] == number
    }
    if not spans:
        known = sorted({row["number"] for row in rows})
        raise MissingData(
            f"{report.path} has no window {number} of the capture; {_listed(report, rows, known)}"
        )
    return spans


def payloads(report: AskedReport, rows: pa.Table) -> pa.Table:
    """Return those rows of `payloads` whose events are in the report."""
    kinds = pc.cast(rows.column("event_type"), pa.string())
    kept = pa.array(np.zeros(rows.num_rows, bool))
    for kind, table in _EVENTS.items() if rows.num_rows else ():
        ids = report.table(table, ["id"]).column("id").combine_chunks()
        kept = pc.or_(kept, pc.and_(pc.equal(kinds, kind), pc.is_in(rows.column("event"), value_set=ids)))
    return rows.filter(kept)


def payload_condition() -> str:
    """Return the SQL condition for such rows."""
    return " OR ".join(
        f"(event_type = '{kind}' AND event IN (SELECT id FROM {table}))" for kind, table in _EVENTS.items()
    )


def _listed(report: AskedReport, rows: list[dict[str, Any]], known: list[int]) -> str:
    if not known:
        return "it has none"
    first = {row["number"]: row for row in reversed(rows)}
    texts = [
        f"{number} ({' to '.join(_seconds(first[number][edge] - report.origin) for edge in _EDGES)})"
        for number in known[:_MANY]
    ]
    return f"it has {', '.join(texts)}{f' and on to {known[-1]}' if len(known) > _MANY else ''}"


def _seconds(ns: int) -> str:
    return f"{f'{ns / 1e9:.9f}'.rstrip('0').rstrip('.')} s"
