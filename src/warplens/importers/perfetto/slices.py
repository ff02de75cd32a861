"""The events of a trace with begin, end and place, for all tables, and the diagnostics of the import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.nsys.ranges import NsysRanges
from warplens.importers.perfetto.clocks import Clocks
from warplens.importers.perfetto.descriptors import Described
from warplens.importers.perfetto.details import Details
from warplens.importers.perfetto.own import Own
from warplens.importers.perfetto.places import TrackPlaces
from warplens.importers.perfetto.trace import BEGIN, INSTANT, STAGE, WHOLE, PerfettoTrace
from warplens.storage import schema
from warplens.storage.writer import PartWriter

_ROWS = 1 << 20


@dataclass
class PerfettoDiagnostics:
    """Collects the rows of `diagnostics`."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def say(self, severity: str, code: str, message: str, count: int | None = None) -> None:
        """Add a row, unless it is about nothing."""
        if count != 0:
            self.rows.append(
                {"severity": severity, "code": code, "source": "perfetto", "message": message, "count": count}
            )


@dataclass
class PerfettoContext:
    """The trace, and where it goes."""

    trace: PerfettoTrace
    described: Described
    own: Own
    clocks: Clocks
    places: TrackPlaces
    part: PartWriter
    tally: PerfettoDiagnostics
    details: Details
    time: Int64Array  # of each event
    end: Int64Array  # of each slice
    partner: Int64Array  # the other half of each event, -1: none
    last: int
    ranges: NsysRanges = field(default_factory=NsysRanges)
    calls: Mapping[str, Int64Array] = field(
        default_factory=dict
    )  # `key` (process and correlation, sorted) and `id`

    def __post_init__(self) -> None:
        events = self.trace.events
        self.begins = np.flatnonzero(np.isin(events["type"], (BEGIN, WHOLE)))
        self.instants = np.flatnonzero(events["type"] == INSTANT)
        self.stages = np.flatnonzero(events["type"] == STAGE)
        self._columns = {name: self.places.column(name) for name in ("process", "thread", "task", "loose")}

    @cached_property
    def unended(self) -> npt.NDArray[np.bool_]:
        """Say of each event whether it began a slice that nothing ends."""
        return np.asarray((self.trace.events["type"] == BEGIN) & (self.partner < 0))

    @cached_property
    def objects(self) -> tuple[Int64Array, pa.Array]:
        """The annotations of all events as JSON objects, and the events that have some."""
        return self.trace.json(np.zeros(len(self.trace.texts) + 1, np.uint8))

    def place_of_track(self, name: str, track: int) -> int:
        """Return a field of the place of a track."""
        return int(self._columns[name][track])

    def main_thread(self, process: int) -> int:
        """Return the first thread of a process; it gets one where it has none."""
        first = min(
            (row["thread"] for row in self.places.thread_rows if row["process"] == process), default=None
        )
        if first is not None:
            return int(first)
        pid = next((int(row["pid"]) for row in self.places.process_rows if row["process"] == process), 0)
        return self.places.thread_of(pid, pid)

    def place(self, name: str, rows: Int64Array) -> Int64Array:
        """Return a field of the places of events, -1: none."""
        places: Int64Array = self._columns[name][self.trace.events["track"][rows]]
        return places

    def of_tables(self) -> npt.NDArray[np.bool_]:
        """Say of each text whether it is the category of a table of warplens's own."""
        known = np.zeros(len(self.trace.texts) + 1, bool)
        known[[number for number in map(self.trace.number, self.own.kinds) if number >= 0]] = True
        return known

    def sorted(self, rows: Int64Array) -> Int64Array:
        """Sort events as the tables of a report are: by process, begin, and the longer first."""
        return rows[np.lexsort((-self.end[rows], self.time[rows], self.place("process", rows)))]

    def write(self, table: str, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Write a table of the report."""
        made = schema.build(table, rows)
        for first in range(0, made.num_rows, _ROWS):  # readers take row group by row group
            self.part.write(table, made.slice(first, _ROWS))
