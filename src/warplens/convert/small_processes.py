"""Converts many small processes together, in about the time of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from warplens.arrays import Int32Array, Int64Array
from warplens.convert.cpu import notices
from warplens.convert.cpu.tables import CpuTables
from warplens.convert.symbols.lookup import Symbols
from warplens.convert.threads import Threads
from warplens.errors import SpoolError
from warplens.spool.notes import Note
from warplens.spool.reader import Bounds, SpoolNames
from warplens.spool.small_spools import LATEST, MergedSpools, Small
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS

_MOST = 1 << 12  # processes
_MOST_BYTES = 1 << 21  # of records


@dataclass(frozen=True)
class Member:
    """A process: its spool file, its key, its spool's contents, and facts about its recording from elsewhere."""

    path: Path
    key: int
    spool: Small
    bounds: Bounds


@dataclass(frozen=True)
class MemberThread:
    """A thread of one of them; `start`: when it was first seen, ns on the spool's clock."""

    index: int
    tid: int
    start: int


class SmallProcesses:
    """Small processes, in order of their keys, that wait to be converted together."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self._bytes = 0

    def takes(self, one: Small) -> bool:
        """Say whether one more fits in, and was recorded on the same machine with the same clock."""
        if not self.members:
            return True
        first = self.members[0].spool
        alike = (
            first.head.clock == one.head.clock
            and first.process.boot_id == one.process.boot_id
            and first.layouts is one.layouts
        )
        return alike and len(self.members) < _MOST and self._bytes < _MOST_BYTES

    def add(self, member: Member) -> None:
        """Take one more."""
        self.members.append(member)
        self._bytes += sum(map(len, member.spool.records.values()))


class MergedTables:
    """The rows of small processes.

    Raises SpoolError if each of its members has to be read alone, for something of one of them
    is odd.

    `spans`: the windows of the capture (ns, the raw clock), None where all counts; `clock` corrects times.
    """

    def __init__(
        self,
        members: Sequence[Member],
        spans: Sequence[tuple[int, int]] | None,
        clock: Callable[[Int64Array], Int64Array],
        symbols: Symbols,
    ) -> None:
        self._members = members
        self._spools = together = MergedSpools.of([member.spool for member in members], spans)
        self._key = np.array([member.key for member in members], np.int64)
        pieces: dict[str, list[pa.Table]] = {}
        threads = _Numbered(SpoolNames(), {}, 0)
        tables = CpuTables(
            together,
            process=0,
            first=0,
            thread_base=0,
            write=lambda table, rows: pieces.setdefault(table, []).append(rows),
            clock=clock,
            threads=threads,
            symbols=symbols,
            most=1 << 16,
        )
        tables.finish(lambda part: None)
        if tables.notes():
            raise SpoolError("odd records")
        # Threads come one member after the other: those of each count from 0.
        self._thread_index = _counted(together.thread_owner, len(members))
        whole = {
            table: pa.concat_tables(rows).unify_dictionaries().combine_chunks()
            for table, rows in pieces.items()
        }
        self.tables = [(table, self._own(table, rows)) for table, rows in whole.items()]

    def last_seen(self) -> list[int]:
        """Return when each member did the last thing that is known of it, ns on the spool's clock."""
        last = []
        for member, call in zip(self._members, self._spools.last_call.tolist(), strict=True):
            until = min(member.bounds.until, LATEST)
            seen = member.spool.head.end_ns or member.bounds.ended
            last.append(max(min(call, until), min(seen, until), member.spool.process.start_ns))
        return last

    def notes(self) -> list[list[Note]]:
        """Return what was noted in each member."""
        noticed = self._spools.notices
        return [
            notices.notes(noticed.get(number, ()), member.spool.process.pid)
            for number, member in enumerate(self._members)
        ]

    def threads(self) -> list[list[MemberThread]]:
        """Return the threads of each member."""
        threads: list[list[MemberThread]] = [[] for _ in self._members]
        together = self._spools
        columns = (together.thread_owner, self._thread_index, together.thread_tid, together.thread_start)
        for owner, *thread in zip(*(column.tolist() for column in columns), strict=True):
            threads[owner].append(MemberThread(*thread))
        return threads

    def _own(self, table: str, rows: pa.Table) -> pa.Table:
        """Give rows the keys of their processes, and put those of each process together."""
        if table == "frames":
            owner = np.searchsorted(self._spools.node_base, rows.column("frame").to_numpy(), side="left") - 1
        else:
            thread = rows.column("thread").to_numpy()
            owner = self._spools.thread_owner[thread]
            rows = _with(
                rows, "thread", pa.array(self._key[owner] * THREADS_PER_PROCESS + self._thread_index[thread])
            )
            rows = _with(
                rows,
                "id",
                pa.array(self._key[owner] * RANGES_PER_PROCESS + _counted(owner, len(self._members))),
            )
        rows = _with(rows, "process", pa.array(self._key[owner]))
        for column in {"frames": ("frame", "parent")}.get(table, ("stack",)):
            if column in rows.column_names:
                rows = _with(rows, column, self._stacks(owner, rows.column(column)))
        # The rows of one process are in order; take() loads pyarrow.compute, which takes longer than the rest.
        if (np.diff(owner) >= 0).all():
            return rows.combine_chunks()
        return rows.take(pa.array(np.argsort(owner, kind="stable"))).combine_chunks()

    def _stacks(self, owner: Int64Array, numbers: pa.ChunkedArray) -> pa.Array:
        # Not is_null() and fill_null(), which load pyarrow.compute. With gaps these are floats, exact below 2^53.
        values = numbers.to_numpy()
        absent = np.isnan(values) if numbers.null_count else np.zeros(len(values), np.bool_)
        number = np.nan_to_num(values).astype(np.int64) - self._spools.node_base[owner]
        return pa.array(self._key[owner] * RANGES_PER_PROCESS + number, mask=absent)


class _Numbered(Threads):
    """Threads numbered from 1 on, in place of system ids."""

    def match(self, tid: Int64Array, time: Int64Array, *, known: bool = False) -> Int32Array:
        """Return the index of each."""
        return (tid - 1).astype(np.int32)

    def of(self, tid: Int64Array) -> Int32Array:
        """Return the indexes of them all."""
        return np.sort(tid - 1).astype(np.int32)


def _counted(owner: Int64Array, count: int) -> Int64Array:
    """Return how many came before each row that have the same owner; `count`: of owners."""
    # For owners [1, 0, 1, 1] the rows by owner are [1, 0, 2, 3] and owner 1 begins at place 1, so
    # the rows get [0, 0, 1, 2].
    order = np.argsort(owner, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))])
    place = np.empty(len(owner), np.int64)
    place[order] = np.arange(len(owner)) - begins[owner[order]]
    return place


def _with(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.set_column(place, rows.schema.field(place), values)
