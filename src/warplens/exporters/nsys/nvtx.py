"""NVTX: ranges, marks, the names of domains and categories, payloads as JSON and their layouts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.exporters.nsys.database import Writer
from warplens.exporters.nsys.tables import rows
from warplens.report.payloads.tables import decoded

if TYPE_CHECKING:
    from warplens.report import Report

_PUSH_POP, _START_END, _MARK, _CATEGORY, _DOMAIN = 59, 60, 34, 33, 75
_FIRST_CATEGORY = 1 << 24  # for those without a number
_USED = """
SELECT DISTINCT process, domain, category, category_id FROM nvtx_ranges UNION
SELECT DISTINCT process, domain, category, category_id FROM nvtx_marks UNION
SELECT DISTINCT process, domain, NULL, NULL FROM nvtx_schemas
"""
# What belongs to a task begins and ends while others run on its thread: it is not on the thread's stack.
_EVENTS = """
SELECT t.start - $origin AS start, {end} AS "end", {kind} AS "eventType", {own} AS "rangeId", t.category_id AS category, c.number AS named,
       t.color AS color, t.message AS text, g.gtid AS "globalTid", {ended} AS "endGlobalTid", coalesce(d.number, 0) AS "domainId",
       t.payload_int AS "int64Value", t.payload_float AS "doubleValue"{payload}
FROM {table} t JOIN g ON t.thread = g.thread {join}
LEFT JOIN d ON d.domain = t.domain LEFT JOIN c ON t.category_id IS NULL AND c.category = t.category
"""
_PAYLOAD = ', p.schema AS schema, p.type AS type, p.data AS data, p.json AS json, q.gpid AS "globalPid", s.id AS "payloadSchemaID"'
# nsys has room for one payload an event: that of the begin, before that of the end.
_PAYLOADS = """
LEFT JOIN (SELECT event, schema, type, data, json FROM payloads WHERE event_type = '{kind}'
           QUALIFY row_number() OVER (PARTITION BY event ORDER BY at_end) = 1) p ON p.event = t.id
LEFT JOIN nvtx_schemas s ON s.schema = p.schema JOIN q ON q.process = t.process
"""
_FACTS = {"type": "type", "flags": "flags", "payloadSize": "size", "alignTo": "align"}


def write(writer: Writer, report: Report) -> None:
    """Write everything that was annotated."""
    counts = report.tables
    if not counts["nvtx_ranges"] and not counts["nvtx_marks"]:
        return
    used = [
        row
        for batch in rows(report, f"SELECT u.*, gpid FROM ({_USED}) u JOIN q USING (process)")
        for row in batch.to_pylist()
    ]
    domains = {
        name: place
        for place, name in enumerate(sorted({row["domain"] for row in used if row["domain"] is not None}), 1)
    }
    loose = sorted(
        {row["category"] for row in used if row["category"] is not None and row["category_id"] is None}
    )
    categories = {name: _FIRST_CATEGORY + place for place, name in enumerate(loose)}
    event = _names(writer, used, domains, categories=categories)
    numbers = f", d AS ({_values('domain', domains)}), c AS ({_values('category', categories)})"
    for table, kind in (("nvtx_ranges", "range"), ("nvtx_marks", "mark")):
        if counts[table]:
            has = counts["payloads"] > 0
            text = numbers + _EVENTS.format(
                table=table,
                payload=_PAYLOAD if has else "",
                **(_RANGE if kind == "range" else _AT),
                join=_join(kind, has),
            )
            event = _events(writer, report, text, event=event)
    _layouts(writer, report, domains)


_RANGE = {
    "end": 'CASE WHEN t.unfinished THEN NULL ELSE t."end" - $origin END',
    "kind": f"CASE WHEN t.style = 'StartEnd' OR t.task IS NOT NULL THEN {_START_END} ELSE {_PUSH_POP} END",
    "own": "CASE WHEN t.style = 'StartEnd' OR t.task IS NOT NULL THEN t.id END",
    "ended": "e.gtid",
}
_AT = {"end": "NULL::BIGINT", "kind": str(_MARK), "own": "NULL::BIGINT", "ended": "NULL::BIGINT"}


def _join(kind: str, payloads: bool) -> str:
    ended = "LEFT JOIN g e ON e.thread = t.end_thread" if kind == "range" else ""
    return ended + (_PAYLOADS.format(kind=kind) if payloads else "")


def _names(
    writer: Writer, used: list[dict[str, Any]], domains: dict[str, int], categories: dict[str, int]
) -> int:
    """Write the names of domains and categories; return how many events that makes."""
    names = []
    for gpid, domain in sorted({(row["gpid"], row["domain"]) for row in used if row["domain"] is not None}):
        names.append(
            {
                "eventType": _DOMAIN,
                "globalTid": gpid,
                "domainId": domains[domain],
                "category": None,
                "text": domain,
            }
        )
    named = {
        (
            row["gpid"],
            domains.get(row["domain"], 0),
            row["category_id"] or categories.get(row["category"], 0),
            row["category"],
        )
        for row in used
        if row["category"] is not None
    }
    for gpid, number, category, text in sorted(named):
        names.append(
            {
                "eventType": _CATEGORY,
                "globalTid": gpid,
                "domainId": number,
                "category": category,
                "text": text,
            }
        )
    writer.rows_of("NVTX_EVENTS", [{"start": 0, "eventId": place, **row} for place, row in enumerate(names)])
    return len(names)


def _values(name: str, numbers: dict[str, int]) -> str:
    """Return SQL for a table of names and numbers."""
    pairs = ", ".join(
        f"('{text.replace(chr(39), chr(39) * 2)}', {number})" for text, number in numbers.items()
    )
    return f'SELECT * FROM (VALUES {pairs or "(NULL, NULL)"}) v("{name}", "number")'


def _events(writer: Writer, report: Report, text: str, event: int) -> int:
    for batch in rows(report, text):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["category"] = pa.array(
            [
                known if known is not None else own
                for known, own in zip(
                    *(columns[name].to_pylist() for name in ("category", "named")), strict=True
                )
            ]
            if columns["named"].null_count < batch.num_rows
            else columns["category"],
            pa.int64(),
        )
        columns["color"] = columns["color"].cast(pa.int64())
        del columns["named"]
        ids = np.arange(event, event + batch.num_rows)
        event += batch.num_rows
        if "json" in columns:
            columns["jsonText"] = pa.array(list(_json(report, batch)), pa.string())
            has = np.asarray(columns["payloadSchemaID"].is_valid())
            schema = {
                "globalPid": columns["globalPid"],
                "domainId": columns["domainId"],
                "payloadSchemaID": columns["payloadSchemaID"],
            }
            writer.write(
                "NVTX_EVENTS_PAYLOAD_SCHEMAS",
                {"eventId": ids[has], **{key: one.filter(pa.array(has)) for key, one in schema.items()}},
            )
            for name in ("schema", "type", "data", "json", "globalPid", "payloadSchemaID"):
                del columns[name]
        writer.write("NVTX_EVENTS", {**columns, "eventId": ids})
    return event


def _json(report: Report, batch: pa.RecordBatch) -> Iterator[str | None]:
    """Yield the payload of each row as JSON; bytes that nobody can read are base64."""
    if batch.column("data").null_count == batch.num_rows:
        yield from batch.column("json").to_pylist()
        return
    has = batch.column("type").is_valid()
    values = iter(
        decoded(report, pa.Table.from_batches([batch]).select(["schema", "type", "data", "json"]).filter(has))
    )
    for with_payload, text in zip(has.to_pylist(), batch.column("json").to_pylist(), strict=True):
        value = next(values) if with_payload else None
        yield (
            text
            if text is not None or not with_payload
            else json.dumps(value, default=_bytes, ensure_ascii=False)
        )


def _bytes(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def _layouts(writer: Writer, report: Report, domains: dict[str, int]) -> None:
    """Write the layouts of payloads, each domain's once: nsys does not say which process registered one."""
    seen = set()
    for row in report.table("nvtx_schemas").to_pylist() if report.tables["nvtx_schemas"] else ():
        number = domains.get(row["domain"], 0)
        place = number, row["id"] - (1 << 64) if row["id"] >> 63 else row["id"]
        if place in seen:
            continue
        seen.add(place)
        told = json.loads(row["definition"])
        own = {"domainId": place[0], "schemaId": place[1]}
        entries = told.get("entries", [])
        head = {**own, "name": row["name"], "numEntries": len(entries)}
        if row["kind"] == "enum":
            writer.rows_of("NVTX_PAYLOAD_ENUMS", [{**head, "size": row["size"]}])
            made = [
                {
                    "name": entry.get("name") or "",
                    "value": _signed(entry.get("value")),
                    "isFlag": entry.get("flag"),
                }
                for entry in entries
            ]
            writer.rows_of(
                "NVTX_PAYLOAD_ENUM_ENTRIES",
                [{**own, "idx": place, **entry} for place, entry in enumerate(made)],
            )
            continue
        writer.rows_of(
            "NVTX_PAYLOAD_SCHEMAS",
            [{**head, **{name: _signed(told.get(key)) for name, key in _FACTS.items()}}],
        )
        fields = {
            "flags": "flags",
            "type": "type",
            "name": "name",
            "description": "description",
            "arrayOrUnionDetail": "array",
            "offset": "offset",
        }
        made = [{name: _signed(entry.get(key)) for name, key in fields.items()} for entry in entries]
        writer.rows_of(
            "NVTX_PAYLOAD_SCHEMA_ENTRIES",
            [{**own, "idx": place, **entry} for place, entry in enumerate(made)],
        )


def _signed(value: Any) -> Any:
    return value - (1 << 64) if isinstance(value, int) and value >> 63 > 0 else value
