"""The table `nvtx_schemas`, and which layout a number means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from warplens.convert.nvtx.domains import Domains
from warplens.spool import payload_schema as layouts
from warplens.spool.definitions import Definition, Definitions
from warplens.spool.payload_schema import Element, Unreadable
from warplens.spool.payload_types import STATIC_IDS, name_of

JSON = "warplens.json"
_MOST_REASONS = 16
_KINDS = {1: "static", 2: "dynamic", 3: "union", 4: "union"}


class Schemas:
    """The schemas and enumerations of one process; a later definition of the same number wins."""

    def __init__(
        self, keys: dict[tuple[int, int], int], definitions: dict[tuple[int, int], Definition]
    ) -> None:
        self._keys, self._made = keys, definitions
        self._layouts: dict[tuple[int, int], Element | None] = {}
        self.strings: dict[
            tuple[int, int], dict[int, str]
        ] = {}  # of registered strings in payloads: handle -> text
        self.unreadable: dict[str, int] = {}  # why -> how many

    @classmethod
    def of(cls, first: int, definitions: Definitions) -> Schemas:
        """Return those that a process defined; their keys count from `first`."""
        made = {(one.domain, one.id): one for one in definitions.of("schema", "enum")}
        return cls({place: first + number for number, place in enumerate(made)}, made)

    def find(self, domain: int, number: int) -> tuple[int, int] | None:
        """Return domain and number under which a schema was registered.

        In its domain, or in the default one.
        """
        return next((place for place in ((domain, number), (0, number)) if place in self._made), None)

    def key(self, place: tuple[int, int]) -> int:
        """Return the key of a schema that `find` found."""
        return self._keys[place]

    def name(self, domain: int, number: int) -> str:
        """Return what a payload's schema is called, by what it holds where it has no name.

        By its number where it was not recorded.
        """
        if number < STATIC_IDS:
            return name_of(number)
        place = self.find(domain, number)
        name = self._made[place].text("name") if place else None
        layout = None if name else self.layout(domain, number)
        return name or (layouts.signature(layout) if layout else f"schema {number}")

    def layout(self, domain: int, number: int) -> Element | None:
        """Return the layout of a schema or predefined type.

        None where there is none that can be read, which is counted once.
        """
        if number < STATIC_IDS:
            return layouts.predefined(number)
        place = self.find(domain, number)
        if place is None:
            return None
        if place not in self._layouts:
            self._layouts[place] = self._parse(place)
        return self._layouts[place]

    def _parse(self, place: tuple[int, int]) -> Element | None:
        def lookup(number: int) -> Mapping[str, Any] | None:
            other = self.find(place[0], number)
            return self._made[other].data if other else None

        try:
            return layouts.parse(self._made[place].data, lookup)
        except Unreadable as error:
            why = (
                str(error)
                if len(self.unreadable) < _MOST_REASONS
                else "its definition is of a kind that is not known"
            )
            self.unreadable[why] = self.unreadable.get(why, 0) + 1
            return None

    def rows(self, process: int, domains: Domains) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        rows = []
        for place, key in self._keys.items():
            one = self._made[place]
            kind = "enum" if one.kind == "enum" else _KINDS.get(one.number("type") or 0, "static")
            size = one.number("size") or None
            strings = self.strings.get(place)
            whole = (
                json.dumps({**one.data, "strings": {str(k): v for k, v in strings.items()}})
                if strings
                else one.json
            )
            rows.append(
                {
                    "schema": key,
                    "process": process,
                    "domain": domains.name(one.domain),
                    "id": one.id,
                    "name": one.text("name"),
                    "kind": kind,
                    "size": size if size is not None and size < 1 << 63 else None,
                    "definition": whole,
                }
            )
        return rows
