"""A trace that was read: its columns, its texts, its header, and the diagnostics about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from warplens.importers.kineto.columns import ROWS_PER_GROUP, Texts, groups
from warplens.importers.kineto.native import TraceParser
from warplens.storage.memory import give_back

if TYPE_CHECKING:
    from warplens.storage.writer import PartWriter


@dataclass
class ParsedTrace:
    """Data that every imported table needs. `say` adds a row of `diagnostics`."""

    reader: TraceParser
    part: PartWriter
    rows: list[dict[str, Any]] = field(default_factory=list)
    first: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        self.counts = self.reader.counts
        members, self.left_out = self.reader.members()
        self.header = {name: _loaded(text) for name, text in members.items()}

    @cached_property
    def texts(self) -> Texts:
        """Names, and all other texts of events."""
        return Texts(*self.reader.texts())

    @cached_property
    def raws(self) -> Texts:
        """Values that were kept as JSON."""
        return Texts(*self.reader.texts(raw=True))

    def take(self, kind: str, *names: str) -> list[npt.NDArray[Any]]:
        """Return columns of one kind of event, each of which can be taken once."""
        return [self.reader.take(kind, name) for name in names]

    def say(self, severity: str, code: str, message: str, count: int | None = None) -> None:
        """Add a row of `diagnostics`."""
        self.rows.append(
            {"severity": severity, "code": code, "source": "kineto", "message": message, "count": count}
        )

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Write columns as a table, a row group after the other.

        A column may be a function that makes it of the rows of a group.
        """
        count = next(len(column) for column in columns.values() if not callable(column))
        for rows in groups(count):
            self.part.write(
                table,
                {
                    name: column(rows) if callable(column) else column[rows]
                    for name, column in columns.items()
                },
            )
            if count > ROWS_PER_GROUP:
                give_back()

    def seen(self, start: npt.NDArray[Any], end: npt.NDArray[Any]) -> None:
        """Let the part reach from the first start to the last end."""
        if len(start):
            first, last = int(start.min()), int(end.max())
            self.first = first if self.first is None else min(self.first, first)
            self.last = last if self.last is None else max(self.last, last)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
