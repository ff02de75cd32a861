"""Extended payloads and their layouts: the tables `nvtx_schemas` and `payloads`."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.nsys.names import distinct_values
from warplens.importers.nsys.rows import NsysRows
from warplens.importers.nsys.taken import NsysContext
from warplens.spool import payload_schema as layouts
from warplens.storage.writer import RANGES_PER_PROCESS

_SCHEMAS, _ENTRIES = "NVTX_PAYLOAD_SCHEMAS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_ENUMS, _ENUM_ENTRIES = "NVTX_PAYLOAD_ENUMS", "NVTX_PAYLOAD_ENUM_ENTRIES"
_OF_EVENTS = "NVTX_EVENTS_PAYLOAD_SCHEMAS"
_FACTS = {"name": "name", "type": "type", "flags": "flags", "size": "payloadSize", "align": "alignTo"}
_KINDS = {1: "static", 2: "dynamic", 3: "union", 4: "union"}
_Row = dict[str, Any]


_Place = tuple[int, int, int]


class NsysPayloads:
    """The layouts that a file lists, and the payloads that it has as JSON.

    nsys does not say which process registered a layout: each process that uses its domain gets it.
    """

    def __init__(
        self,
        context: NsysContext,
        keys: dict[_Place, int],
        names: dict[_Place, str],
        *,
        of_events: dict[int, tuple[int, int]],
    ) -> None:
        """`keys` and `names`: of layouts by process, domain and number; `of_events`: domain and number."""
        self._context, self._keys, self._names, self._of_events = context, keys, names, of_events

    @classmethod
    def written(
        cls, context: NsysContext, domains: dict[tuple[int, int], str], used: Collection[tuple[int, int]]
    ) -> NsysPayloads:
        """Write the layouts of the domains that are used, by process and domain."""
        keys: dict[_Place, int] = {}
        names: dict[_Place, str] = {}
        made = _definitions(context)
        rows = []
        counts: dict[int, int] = {}
        for owner, domain in sorted(set(used)):
            for (where, number), definition in made.items():
                if where != domain:
                    continue
                process = context.identity.keys[owner]
                counts[process] = counts.get(process, -1) + 1
                key = process * RANGES_PER_PROCESS + counts[process]
                keys[owner, domain, number] = key
                names[owner, domain, number] = definition.get("name") or _signature(definition, domain, made)
                rows.append(
                    {
                        "schema": key,
                        "process": process,
                        "domain": (domains.get((owner, domain)) or f"domain {domain}") if domain else None,
                        "id": number & 0xFFFFFFFFFFFFFFFF,
                        "name": definition.get("name"),
                        "kind": "enum"
                        if definition["kind"] == "enum"
                        else _KINDS.get(definition["type"], "static"),
                        "size": definition["size"] or None,
                        "definition": json.dumps(definition),
                    }
                )
        if unused := [place for place in made if place[0] not in {domain for _, domain in used}]:
            context.tally.say(
                "info",
                "not-imported",
                "layouts of payloads were left out: nothing was recorded in their domain",
                len(unused),
            )
        context.write("nvtx_schemas", sorted(rows, key=lambda row: int(row["schema"])))
        return cls(context, keys, names, of_events=_of_events(context))

    def write(self, kind: str, rows: NsysRows, ids: Int64Array, process: Int64Array, texts: pa.Array) -> None:
        """Write the payloads of ranges or marks; payloads without a layout are only counted."""
        has = np.asarray(texts.is_valid())
        lost = rows.valid("binaryData") & ~has
        if lost.any():
            message = f"payloads of {kind}s are in the file as bytes only: export it with --include-json=true to have them"
            self._context.tally.say("info", "not-imported", message, int(lost.sum()))
        if not has.any():
            return
        which = np.flatnonzero(has)
        events, known = rows.ints("eventId")[which].tolist(), rows.valid("eventId")[which].tolist()
        owners = (rows.ints("globalTid")[which] & ~0xFFFFFF).tolist()
        places = [
            (owner, *self._of_events[event]) if ok and event in self._of_events else None
            for event, ok, owner in zip(events, known, owners, strict=True)
        ]
        keys = [self._keys.get(place) if place else None for place in places]
        always = np.ones(len(which), bool)
        self._context.write(
            "payloads",
            {
                "process": process[which],
                "event_type": distinct_values(np.zeros(len(which), np.int32), [kind], always),
                "event": ids[which],
                "schema": pa.array(keys, pa.int64()),
                "type": [self._names.get(place, "json") if place else "json" for place in places],
                "at_end": ~always,
                "cut": ~always,
                "json": texts.filter(pa.array(has)),
            },
        )


def _definitions(context: NsysContext) -> dict[tuple[int, int], _Row]:
    """Return each layout by domain and number, as the spool would have it.

    A later one of the same number counts.
    """
    database, definitions = context.database, {}
    context.tally.used |= {
        _SCHEMAS,
        _ENTRIES,
        _ENUMS,
        _ENUM_ENTRIES,
        _OF_EVENTS,
        "NVTX_PAYLOAD_SCHEMA_RELATIONS",
    }
    for row in database.read(
        _SCHEMAS, ("domainId", "schemaId", "type", "flags", "payloadSize", "alignTo"), texts=("name",)
    ).dictionaries():
        values = {name: row[here] for name, here in _FACTS.items() if row[here]}
        definitions[row["domainId"], row["schemaId"]] = {
            "kind": "schema",
            "type": 0,
            "size": 0,
            **values,
            "entries": {},
        }
    ints = ("domainId", "schemaId", "idx", "flags", "type", "arrayOrUnionDetail", "offset")
    for row in database.read(_ENTRIES, ints, texts=("name", "description")).dictionaries():
        values = {
            "name": row["name"],
            "description": row["description"],
            "flags": row["flags"],
            "type": row["type"],
        }
        values |= {"array": row["arrayOrUnionDetail"], "offset": row["offset"]}
        if owner := definitions.get((row["domainId"], row["schemaId"])):
            owner["entries"][row["idx"]] = {name: value for name, value in values.items() if value}
    for row in database.read(_ENUMS, ("domainId", "schemaId", "size"), texts=("name",)).dictionaries():
        named = {"name": row["name"]} if row["name"] else {}
        definitions[row["domainId"], row["schemaId"]] = {
            "kind": "enum",
            "type": 0,
            "size": row["size"] or 0,
            **named,
            "entries": {},
        }
    for row in database.read(
        _ENUM_ENTRIES, ("domainId", "schemaId", "idx", "value", "isFlag"), texts=("name",)
    ).dictionaries():
        if owner := definitions.get((row["domainId"], row["schemaId"])):
            owner["entries"][row["idx"]] = {
                "name": row["name"] or "",
                "value": row["value"],
                "flag": row["isFlag"],
            }
    for definition in definitions.values():
        definition["entries"] = [entry for _, entry in sorted(definition["entries"].items())]
    return definitions


def _signature(definition: _Row, domain: int, made: dict[tuple[int, int], _Row]) -> str:
    """Describe a layout without a name."""
    try:
        return layouts.signature(
            layouts.parse(definition, lambda number: made.get((domain, number), made.get((0, number))))
        )
    except layouts.Unreadable:
        return "json"


def _of_events(context: NsysContext) -> dict[int, tuple[int, int]]:
    """Return domain and number of the layout of each event's payload, by `eventId`."""
    rows = context.database.read(_OF_EVENTS, ("eventId", "domainId", "payloadSchemaID"))
    columns = (rows.ints(name).tolist() for name in ("eventId", "domainId", "payloadSchemaID"))
    return {event: (domain, number) for event, domain, number in zip(*columns, strict=True)}
