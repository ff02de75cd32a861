"""Reads the layouts of a report's payloads from its table of schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warplens.spool import payload_schema as layouts
from warplens.spool.payload_schema import Element, Unreadable
from warplens.spool.payload_types import NUMBERS

if TYPE_CHECKING:
    from warplens.report.asked import AskedReport

_COLUMNS = ["schema", "process", "domain", "id", "definition"]


class PayloadLayouts:
    """Finds what a payload of a schema (its key) or a predefined type (its name) is made of."""

    @classmethod
    def of(cls, report: AskedReport) -> PayloadLayouts:
        """Return those of a report."""
        return cls(report.table("nvtx_schemas", _COLUMNS).to_pylist())

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        """`rows`: of `nvtx_schemas`."""
        self._rows = {row["schema"]: row for row in rows}
        self._keys = {(row["process"], row["domain"], row["id"]): row["schema"] for row in rows}
        self._data: dict[int, dict[str, Any]] = {}
        self._known: dict[int, Element | None] = {}

    def get(self, schema: int | None, kind: str | None) -> Element | None:
        """Return the layout; None if there is none, or none that can be read."""
        if schema is None:
            return layouts.predefined(NUMBERS.get(kind or "", 0))
        if schema not in self._known:
            self._known[schema] = self._parse(schema)
        return self._known[schema]

    def strings(self, schema: int | None) -> Mapping[int, str]:
        """Return the texts of registered strings that payloads of a schema name."""
        given = self._definition(schema).get("strings") if schema is not None else None
        if not isinstance(given, dict):
            return {}
        numbered = {
            key: text for key, text in given.items() if key.isascii() and key.isdigit() and len(key) < 20
        }
        return {int(key): text for key, text in numbered.items() if isinstance(text, str)}

    def _parse(self, schema: int) -> Element | None:
        row = self._rows.get(schema)
        if row is None:
            return None

        def lookup(number: int) -> Mapping[str, Any] | None:
            for domain in (row["domain"], None):
                key = self._keys.get((row["process"], domain, number))
                if key is not None:
                    return self._definition(key)
            return None

        try:
            return layouts.parse(self._definition(schema), lookup)
        except Unreadable:
            return None

    def _definition(self, schema: int) -> dict[str, Any]:
        if schema not in self._data:
            row = self._rows.get(schema)
            try:
                data = json.loads(row["definition"]) if row is not None else {}
            except (ValueError, RecursionError):
                data = {}
            self._data[schema] = data if isinstance(data, dict) else {}
        return self._data[schema]
