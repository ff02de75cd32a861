"""Reads the definitions of programs from JSON.

Schemas, enumerations, counters, scopes, resources, tasks and more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from warplens.spool.process import number, text
from warplens.spool.strings import Strings

_ID = (1 << 64) - 1
_DECODER = json.JSONDecoder(strict=False)  # one for all: there may be a million tasks


@dataclass(frozen=True)
class Definition:
    """One object: its kind, its NVTX number in the domain, the time and thread of its definition.

    The time is in ns of the spool's clock.
    """

    kind: str
    domain: int
    id: int
    start: int
    thread: int
    data: dict[str, Any]
    json: str

    def text(self, name: str) -> str | None:
        """Return a member that is a string; None for anything else."""
        value = self.data.get(name)
        return text(value) if isinstance(value, str) else None

    def number(self, name: str) -> int | None:
        """Return a member that is a number from 0 to 2^64-1; None for anything else."""
        return number(self.data.get(name), _ID)


@dataclass
class Definitions:
    """All definitions of a spool in the order in which they were made.

    A later one of the same object wins.
    """

    found: list[Definition] = field(default_factory=list)
    broken: int = 0

    def of(self, *kinds: str) -> list[Definition]:
        """Return the definitions of some kinds."""
        return [one for one in self.found if one.kind in kinds]


# string id, domain, id, start, thread
Row = tuple[int, int, int, int, int]


def read(rows: Sequence[Row], strings: Strings) -> Definitions:
    """Decode the JSON of `define` records; what cannot be decoded is counted."""
    definitions = Definitions()
    for name, domain, object_id, start, thread in rows:
        whole = strings.get(name)
        data = _object(whole) if whole is not None else None
        kind = data.get("kind") if data is not None else None
        if whole is None or data is None or not isinstance(kind, str):
            definitions.broken += 1
            continue
        definitions.found.append(
            Definition(text(kind), domain, object_id, start=start, thread=thread, data=data, json=whole)
        )
    definitions.found.sort(key=lambda one: one.start)
    return definitions


def _object(whole: str) -> dict[str, Any] | None:
    try:
        data = _DECODER.decode(whole)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
