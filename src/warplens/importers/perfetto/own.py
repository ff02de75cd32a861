"""Attributes that warplens writes into a trace because Perfetto has no field for them.

See `exporters/perfetto/attributes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warplens.importers.perfetto import wire
from warplens.importers.perfetto.trace import PerfettoTrace
from warplens.model.tables import TABLES

_ATTRIBUTES = 126
_SPAN = 1 << 62


@dataclass(frozen=True)
class SliceKind:
    """The events of a category: rows of `table`, named by its column `name`.

    None: the details have the name.
    """

    table: str
    name: str | None


@dataclass
class Own:
    """One or several reports in a trace.

    `tracks`, `counters`: by uuid, what they show; `which`: of which report they are.
    """

    reports: list[dict[str, Any]] = field(default_factory=list)
    tracks: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    counters: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    which: dict[int, int] = field(default_factory=dict)
    kinds: dict[str, SliceKind] = field(default_factory=dict)

    def rows(self, table: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the rows of one of the small tables, each with the number of its report."""
        return [
            (number, row)
            for number, report in enumerate(self.reports)
            for row in report["tables"].get(table, ())
        ]


def own(trace: PerfettoTrace) -> Own:
    """Read the attributes of a trace; what is not as warplens writes it is passed over."""
    attributes = Own()
    for packet in trace.others(_ATTRIBUTES):
        try:
            for data in wire.inner(wire.message(packet.data), 1):
                attribute = wire.message(data)
                key, value = wire.text(attribute, 1), wire.text(attribute, 3)
                if key and value and key.startswith("warplens."):
                    _take(attributes, key, json.loads(value))
        except (ValueError, RecursionError):
            continue
    return attributes


def _take(attributes: Own, key: str, value: Any) -> None:
    if not isinstance(value, dict):
        return
    if key == "warplens.report":
        attributes.reports.append(_checked(value))
        kinds = value.get("kinds") if isinstance(value.get("kinds"), dict) else {}
        for category, kind in (kinds or {}).items():
            table = kind.get("table") if isinstance(kind, dict) else None
            if isinstance(table, str) and table in TABLES:
                name = kind.get("name")
                attributes.kinds[category] = SliceKind(
                    table, name if name in {column.name for column in TABLES[table].columns} else None
                )
        return
    into = (
        attributes.tracks
        if key == "warplens.tracks"
        else attributes.counters
        if key == "warplens.counters"
        else None
    )
    for uuid, about in value.items() if into is not None and attributes.reports else ():
        if uuid.isdigit() and isinstance(about, dict) and into is not None:
            into[int(uuid)] = about
            attributes.which[int(uuid)] = len(attributes.reports) - 1


def _checked(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report's description with the types that its readers rely on."""
    tables = report.get("tables")
    rows = {
        name: [row for row in given if isinstance(row, dict)]
        for name, given in (tables.items() if isinstance(tables, dict) else ())
        if isinstance(given, list)
    }
    numbers = {name: _number(report.get(name)) for name in ("origin", "end", "realtime_offset")}
    command = report.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    sources = report.get("sources") if isinstance(report.get("sources"), dict) else {}
    return {
        **report,
        **numbers,
        "tables": rows,
        "command": words,
        "sources": sources,
        "host": str(report.get("host") or ""),
    }


def _number(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < _SPAN else 0
