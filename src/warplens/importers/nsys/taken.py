"""Common columns of GPU work: time, order, device, context, stream, and the API call that launched it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.conditions import Where
from warplens.importers.nsys.database import LATEST, Database
from warplens.importers.nsys.identity import NsysIdentity
from warplens.importers.nsys.rows import NsysRows
from warplens.importers.rows import numbered
from warplens.storage.writer import PartWriter


@dataclass
class NsysDiagnostics:
    """Collects the rows of `diagnostics` about the import as a whole."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # tables of the file that were taken over

    def say(self, severity: str, code: str, message: str, count: int | None = None) -> None:
        """Add a row."""
        self.rows.append(
            {"severity": severity, "code": code, "source": "nsys", "message": message, "count": count}
        )


@dataclass
class NsysCalls:
    """The API calls of the report: by process and correlation."""

    keys: Int64Array  # sorted
    ids: Int64Array
    starts: Int64Array

    def of(self, process: Int64Array, correlation: Int64Array, valid: BoolArray) -> pa.Array:
        """Return the ids of the calls with these correlations; null if there is none."""
        place, known = self._find(process, correlation, valid)
        return (
            pa.array(self.ids[place], pa.int64(), mask=~known)
            if len(self.keys)
            else pa.nulls(len(process), pa.int64())
        )

    def begins(
        self, process: Int64Array, correlation: Int64Array, valid: BoolArray
    ) -> tuple[Int64Array, BoolArray]:
        """Return when the calls with these correlations began, and which of them there are."""
        place, known = self._find(process, correlation, valid)
        return (self.starts[place] if len(self.keys) else np.zeros(len(process), np.int64)), known

    def _find(
        self, process: Int64Array, correlation: Int64Array, valid: BoolArray
    ) -> tuple[Int64Array, BoolArray]:
        if not len(self.keys):
            return np.zeros(len(process), np.int64), np.zeros(len(process), bool)
        wanted = join(process, correlation)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return place, np.asarray(valid & (self.keys[place] == wanted))


def join(process: Int64Array, correlation: Int64Array) -> Int64Array:
    """Return one number for process and correlation (CUPTI's are of 32 bits)."""
    return np.asarray((process << 32) | (correlation & 0xFFFFFFFF), np.int64)


@dataclass
class NsysContext:
    """The database and the writers that the import of every table needs."""

    database: Database
    identity: NsysIdentity
    part: PartWriter
    tally: NsysDiagnostics
    calls: NsysCalls = field(default_factory=lambda: NsysCalls(*(np.empty(0, np.int64) for _ in range(3))))

    def read(
        self, table: str, ints: Sequence[str], texts: Sequence[str] = (), *, where: Where = ()
    ) -> NsysRows:
        """Return the rows of a table that have a time.

        Those without one, or with an impossible one, are counted as left out.
        """
        rows = self.database.read(table, ints, texts=texts, where=where)
        self.tally.used.add(table)
        times = rows.ints("start")
        good = rows.valid("start") & (times <= LATEST) & (times >= -LATEST)
        if "end" in ints:
            good &= (rows.ints("end") <= LATEST) & (rows.ints("end") >= -LATEST)
        if good.all():
            return rows
        self.tally.say(
            "warning",
            "no-time",
            f"rows of {table} without a time that can be were left out",
            int((~good).sum()),
        )
        return rows.taken(good)

    def write(self, table: str, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Write a table of the report: columns or rows."""
        self.part.write(table, rows)


@dataclass
class NsysEvents:
    """Rows of one table in the order of the report, with the columns that most tables begin with."""

    rows: NsysRows
    process: Int64Array
    start: Int64Array
    end: Int64Array

    @classmethod
    def sorted(
        cls,
        context: NsysContext,
        rows: NsysRows,
        owner: str,
        start: str = "start",
        end: str | None = "end",
        table: str = "",
    ) -> NsysEvents:
        """Sort rows by process and start, the longer first.

        No end means the start; one before it too, and is counted.
        """
        begins = rows.ints(start)
        ends = begins if end is None else np.where(rows.valid(end), rows.ints(end), begins)
        wrong = ends < begins
        if wrong.any():
            context.tally.say(
                "warning",
                "ends-first",
                f"rows of {table} that end before they start count as instants",
                int(wrong.sum()),
            )
            ends = np.maximum(ends, begins)
        process = context.identity.process(rows.ints(owner))
        order = np.lexsort((-ends, begins, process))
        return cls(rows.taken(order), process[order], begins[order], ends[order])

    def ids(self) -> Int64Array:
        """Return ids that grow within each process."""
        return numbered(self.process)

    def placed(self, context: NsysContext) -> dict[str, Any]:
        """Return the columns that tell when and where a GPU did something."""
        return {
            **self.timed(),
            "device": narrow(self.rows.ints("deviceId")),
            "context": self.rows.ints("contextId"),
            "stream": self.rows.ints("streamId"),
            **self.called(context),
        }

    def timed(self) -> dict[str, Any]:
        """Return id, process, start and end."""
        return {"id": self.ids(), "process": self.process, "start": self.start, "end": self.end}

    def called(self, context: NsysContext) -> dict[str, Any]:
        """Return correlation and API call."""
        correlation = self.rows.ints("correlationId")
        valid = self.rows.valid("correlationId") & (correlation != 0)
        return {
            "api": context.calls.of(self.process, correlation, valid),
            "correlation": pa.array(correlation, pa.int64(), mask=~valid),
        }

    def optional(self, name: str) -> pa.Array:
        """Return an integer column with its nulls."""
        return pa.array(self.rows.ints(name), pa.int64(), mask=~self.rows.valid(name))

    def optional_narrow(self, name: str) -> pa.Array:
        """Return an integer column of 32 bits with its nulls."""
        return pa.array(narrow(self.rows.ints(name)), pa.int32(), mask=~self.rows.valid(name))


def narrow(values: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return values as 32-bit integers; unsigned ones wrap."""
    return values.astype(np.int32)
