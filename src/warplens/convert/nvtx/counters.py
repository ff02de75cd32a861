"""The table `nvtx_counters`: counters of programs, and their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warplens.convert.nvtx.domains import Domains
from warplens.convert.nvtx.schemas import Schemas
from warplens.convert.nvtx.scopes import Scopes
from warplens.spool.definitions import Definition, Definitions
from warplens.spool.payload_schema import COUNTER, Leaf, Scalar, Struct, leaves

_COUNTERS = 5  # NVTX's id of counter semantics
_LIMIT_MIN, _LIMIT_MAX = 1 << 2, 1 << 3
_VALUE_TYPES = {1 << 4: "absolute", 2 << 4: "delta", 3 << 4: "delta_since_start"}
_INTERPOLATIONS = {1 << 8: "point", 2 << 8: "since_last", 3 << 8: "until_next", 4 << 8: "linear"}
_ROLE = 15 << 12
_MOST_FIELDS = 256


@dataclass(frozen=True)
class Counter:
    """A counter of a program: the keys of its rows, one, or one per number of a structure."""

    keys: tuple[int, ...]
    fields: tuple[Leaf, ...] = ()


@dataclass
class Counters:
    """The counters of one process.

    Samples of those that were never defined get rows as they are met.
    """

    first: int
    process: int
    scopes: Scopes
    schemas: Schemas
    domains: Domains
    rows: list[dict[str, Any]] = field(default_factory=list)
    unknown: set[tuple[int, int]] = field(default_factory=set)
    _made: dict[tuple[int, int], Counter] = field(default_factory=dict)
    _single: dict[tuple[int, int, str], int] = field(default_factory=dict)
    _told: dict[tuple[int, int], Definition] = field(default_factory=dict)

    @classmethod
    def of(
        cls, first: int, process: int, definitions: Definitions, *, schemas: Schemas, domains: Domains
    ) -> Counters:
        """Return the defined counters of a process."""
        counters = cls(first, process, Scopes(definitions), schemas, domains)
        counters._told |= {(one.domain, one.id): one for one in definitions.of("counter")}
        counters._made |= {place: counters._define(one) for place, one in counters._told.items()}
        return counters

    def get(self, domain: int, number: int) -> Counter | None:
        """Return a defined counter: of its domain, or of the default one."""
        return self._made.get((domain, number)) or self._made.get((0, number))

    def single(self, domain: int, number: int, kind: str) -> int:
        """Return the key for plain numbers (`kind`: `int64`, `float64`) of any counter, defined or not."""
        known = self.get(domain, number)
        if known is not None and not known.fields:
            return known.keys[0]
        place = (domain, number, kind if known is None else "")
        if place not in self._single:
            one = self._told.get((domain, number)) or self._told.get((0, number))
            self._single[place] = self._row(
                domain, number, one, name=one.text("name") if one else None, kind=kind, own=None
            )
            if one is None:
                self.unknown.add((domain, number))
        return self._single[place]

    def _define(self, one: Definition) -> Counter:
        number = one.number("schema") or 0
        layout = self.schemas.layout(one.domain, number)
        name = one.text("name")
        if isinstance(layout, Struct):
            fields = _numbers(layout)
            if fields:
                keys = tuple(
                    self._row(
                        one.domain,
                        one.id,
                        one,
                        name=f"{name or one.id}.{leaf.name}",
                        kind=leaf.scalar.type.name,
                        own=leaf.semantics,
                    )
                    for leaf in fields
                )
                return Counter(keys, fields)
        kind = layout.type.name if isinstance(layout, Scalar) else self.schemas.name(one.domain, number)
        return Counter((self._row(one.domain, one.id, one, name=name, kind=kind, own=None),))

    def _row(
        self, domain: int, number: int, one: Definition | None, name: str | None, kind: str, own: Any
    ) -> int:
        key = self.first + len(self.rows)
        row: dict[str, Any] = {
            "counter": key,
            "process": self.process,
            "domain": self.domains.name(domain),
            "id": number,
            "name": name,
            "type": kind,
        }
        if one is not None:
            scope = self.scopes.path(one.domain, one.number("scope") or 0)
            row |= {
                "description": one.text("description"),
                "scope": scope,
                **_meaning(one.data.get("semantics")),
                **_meaning(own),
            }
        self.rows.append(row)
        return key


def _numbers(layout: Struct) -> tuple[Leaf, ...]:
    """The numbers of a structure that count: those marked as counters where any is, else all."""
    numbers = [leaf for leaf in leaves(layout, _MOST_FIELDS) or () if leaf.scalar.type.numeric]
    marked = [leaf for leaf in numbers if leaf.flags & _ROLE == COUNTER]
    return tuple(marked or numbers)


def _meaning(semantics: Any) -> dict[str, Any]:
    """Columns from the counter semantics of a definition; empty without any."""
    items = semantics if isinstance(semantics, list) else []
    data = next((one for one in items if isinstance(one, Mapping) and one.get("id") == _COUNTERS), None)
    if data is None:
        return {}
    given = data.get("flags")
    flags = given if isinstance(given, int) else 0
    unit = data.get("unit")
    numerator, denominator = (
        _number(data.get("unit_scale_numerator")),
        _number(data.get("unit_scale_denominator")),
    )
    return {
        "unit": unit.encode("utf-8", errors="replace").decode() if isinstance(unit, str) and unit else None,
        "scale": numerator / denominator if numerator and denominator else None,
        "minimum": _number(data.get("min")) if flags & _LIMIT_MIN else None,
        "maximum": _number(data.get("max")) if flags & _LIMIT_MAX else None,
        "value_type": _VALUE_TYPES.get(flags & 3 << 4),
        "interpolation": _INTERPOLATIONS.get(flags & 7 << 8),
    }


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    except OverflowError:
        return None
