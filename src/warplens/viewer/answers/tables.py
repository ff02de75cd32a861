"""Arrow tables as the page shows them.

Columns with unit and kind, cells as JSON, and where each row is on the timeline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warplens.model.tables import TABLES
from warplens.viewer import limits
from warplens.viewer.answers.event_address import by_id, located
from warplens.viewer.answers.naming import table_of
from warplens.viewer.answers.plain import cut, plain

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report
    from warplens.viewer.answers.loaded_report import Opened

Link = dict[str, Any] | None
_UNIT = re.compile(r"(.+?) \(([^()]{1,12})\)")
_LINKED = 1_000  # rows that are looked up on the timeline
_CLOCK = frozenset(("start", "end", "time"))


def shown(
    title: str, table: pa.Table, *, links: Sequence[Link] | None = None, cut_: bool = False, note: str = ""
) -> dict[str, Any]:
    """Return a table of limited length as `Table`."""
    import pyarrow as pa

    rows = table.slice(0, limits.ROWS)
    columns, cells = [], []
    for field, values in zip(rows.schema, rows.columns, strict=True):
        match = _UNIT.fullmatch(field.name)
        kind = _kind(field.type)
        name, unit = (match[1], match[2]) if match and kind == "number" else (field.name, None)
        # Times from the start of the report are places on the timeline; lengths are numbers of ns.
        if unit == "ns" and re.fullmatch(r"(?:.* )?(?:Start|End|Time Begin|At)", name, re.IGNORECASE):
            kind = "time"
        columns.append({"name": cut(name), "unit": unit, "kind": kind})
        if pa.types.is_dictionary(field.type):
            values = values.cast(field.type.value_type)
        cells.append([plain(value) for value in values.to_pylist()])
    answer: dict[str, Any] = {
        "title": title,
        "columns": columns,
        "rows": [list(row) for row in zip(*cells, strict=True)] if cells else [],
    }
    if links is not None and any(links):
        answer["links"] = list(links)[: rows.num_rows]
    if cut_ or table.num_rows > rows.num_rows:
        answer["cut"] = True
    if note:
        answer["note"] = note
    return answer


def with_origin(table: pa.Table, origin: int) -> pa.Table:
    """Return rows of SQL with the columns start, end and time relative to the report's origin.

    Their names become `start (ns)` and so on.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if field.name in _CLOCK and pa.types.is_int64(field.type):
            moved = pc.subtract(table.column(place), pa.scalar(origin, pa.int64()))
            table = table.set_column(place, f"{field.name} (ns)", moved)
    return table


def places(rows: pa.Table) -> list[tuple[int | None, int | None]]:
    """Return the id and the start of the first rows of SQL: null if they have none."""
    count = min(rows.num_rows, _LINKED)
    ids, starts = (
        rows.column(name).slice(0, count).to_pylist()
        if rows.column_names.count(name) == 1
        else [None] * count
        for name in ("id", "start")
    )
    return [(_number(id_), _number(start)) for id_, start in zip(ids, starts, strict=True)]


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and abs(value) < limits.TIME else None


def sql_links(opened: Opened, text: str, rows: Sequence[tuple[int | None, int | None]]) -> list[Link]:
    """Return the places of SQL rows on the timeline, by their `places`.

    By `id` of a table that the query names, else by `start`.
    """
    words = set(re.findall(r"\w+", text.lower()))
    layers = [layer for layer in opened.every_lane.layers if layer in words and layer in TABLES]
    return [_row_link(opened, layers, id_, begin=start) for id_, start in rows] if layers else []


def _row_link(opened: Opened, layers: Sequence[str], id_: int | None, begin: int | None) -> Link:
    for layer in layers:
        link = by_id(opened, layer, id_, start=begin) if id_ is not None else None
        if link is not None and (begin is None or link["start"] == begin - opened.origin):
            return link
    if begin is None:
        return None
    return _at(opened, layers, begin)


def time_links(
    opened: Opened, report: Report, starts: Sequence[int | None], layers: Sequence[str]
) -> list[Link]:
    """Say which events of some layers begin at these times (ns, the report's clock)."""
    asked = starts[:_LINKED]
    wanted = list({start for start in asked if start is not None})
    links: dict[int, Link] = {}
    for layer in layers:
        table = table_of(layer)
        if layer == table and report.tables[table] and wanted:
            text = f'SELECT "start", min(id) AS id FROM {table} WHERE "start" IN (SELECT unnest($starts)) GROUP BY 1'
            for row in report.sql(text, {"starts": wanted}).to_pylist():
                links.setdefault(row["start"], by_id(opened, layer, row["id"], start=row["start"]))
        else:
            links.update({start: _at(opened, [layer], start) for start in wanted if start not in links})
    return [None if start is None else links.get(start) for start in asked]


def _at(opened: Opened, layers: Sequence[str], start: int) -> Link:
    for layer in layers:
        event = opened.every_lane.next_of(layer, start, start + 1)
        if event is not None and event.start == start:
            return located(opened, event)
    return None


def _kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "text"
