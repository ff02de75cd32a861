"""Reads many small spools at once, as if they were one.

For processes that recorded only native code of the CPU side.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from warplens.arrays import Int64Array
from warplens.errors import SpoolError
from warplens.handover import untrusted
from warplens.spool import chunks as chunking
from warplens.spool import layout, wide
from warplens.spool.chunks import Chunk
from warplens.spool.process import Process
from warplens.spool.reader import Bounds
from warplens.spool.strings import Strings
from warplens.spool.wide import Records, WideRecords

MOST = 1 << 18  # bytes up to the end of the chunks
_AT_FIRST = (
    1 << 15
)  # bytes that most small spools have: what lies behind was never written, and would have to be filled with zeros
TIMED = (
    "cpu_sample",
    "os_call",
    "cpu_state",
)  # records with a thread, in the order in which their threads are numbered
KINDS = ("cpu_frame", "cpu_module", *TIMED, "cpu_notice")
_STRINGS = {
    "cpu_frame": ("file",),
    "cpu_module": ("build_id",),
    "os_call": ("text",),
}  # fields with strings, beside `name`
_NATIVE_SAMPLE = 2
_STATES = (1, 2, 3)
LATEST = 1 << 62
_NOTHING = np.dtype("V8")


@dataclass(frozen=True)
class Small:
    """One small spool: header, facts about the process, records by type, contents of its strings chunks."""

    head: layout.Head
    process: Process
    layouts: layout.Layouts
    records: dict[str, bytes]
    strings: tuple[bytes, ...]


def read(path: Path, process: Process, layouts: layout.Layouts) -> Small | None:
    """Read a spool whole.

    None where it is not small, holds anything else, is damaged, or was a flight recorder's or lost
    something.
    """
    try:
        with untrusted.opened(path) as file:
            data = file.read(_AT_FIRST)
            head = layout.read_head(data, str(path))
            end = head.chunk_end
            if not layout.PAGE <= head.first_chunk <= end <= MOST or end % layout.PAGE:
                return None
            data += file.read(max(end - len(data), 0))
    except (OSError, SpoolError):
        return None
    if (
        head.buffered
        or head.error
        or head.given_up_ns
        or any(head.dropped)
        or not process.start_ns
        or len(data) < end
    ):
        return None
    chunks, damaged = chunking.walk(data, head, end)
    records: dict[str, bytes] = {}
    strings = []
    for chunk in sorted(chunks, key=attrgetter("sequence")):
        content = data[chunk.offset : chunk.offset + chunk.size]
        if chunk.kind == chunking.STRINGS:
            strings.append(content)
            continue
        name, dtype = layouts.wide.get(chunk.record, ("", _NOTHING))
        size = dtype.itemsize
        if chunk.kind != chunking.WIDE or chunk.generation or name not in KINDS or chunk.stride != size:
            return None
        count = min(-(-len(content.rstrip(b"\0")) // size), chunk.size // size)
        if count:
            records[name] = records.get(name, b"") + content[: count * size]
    return None if damaged else Small(head, process, layouts, records=records, strings=tuple(strings))


class MergedSpools:
    """Small spools of one machine as one process, for `CpuTables`.

    Threads, stacks, modules and strings get numbers that no two share.

    `spans`: windows (ns, the spools' clock); None: all records count. Raises SpoolError if anything is odd: read each alone then.
    """

    def __init__(
        self,
        members: Sequence[Small],
        spans: Sequence[tuple[int, int]] | None,
        records: dict[str, Records],
        owner: dict[str, Int64Array],
    ) -> None:
        """`records`: all of a type; `owner`: the member that has each."""
        self.bounds = Bounds(windows=spans)
        self.process = members[0].process
        self._count = len(members)
        self._layouts, self._records, self._owner = _layouts(members), records, owner
        self._check()
        self.last_call = self._last("os_call", "cpu_sample")
        self.strings = self._number_strings(members)
        self.notices = self._notices()
        self.thread_owner, self.thread_tid, self.thread_start = self._number_threads()
        self.node_base = self._number_stacks()
        self._number_modules()
        self.wide = self._wide()

    @classmethod
    def of(cls, members: Sequence[Small], spans: Sequence[tuple[int, int]] | None) -> MergedSpools:
        """Return the spools of some processes as one."""
        records, owner = {}, {}
        for name in KINDS:
            mine = [
                (number, member.records[name])
                for number, member in enumerate(members)
                if name in member.records
            ]
            if mine:
                dtype = _layouts(members)[name][1]
                records[name] = np.frombuffer(bytearray().join(content for _, content in mine), dtype)
                owner[name] = np.repeat(
                    [number for number, _ in mine], [len(content) // dtype.itemsize for _, content in mine]
                )
        return cls(members, spans, records, owner=owner)

    def _check(self) -> None:
        for name, records in self._records.items():
            number, dtype = self._layouts[name]
            if not wide.readable(name, dtype) or not (records["type"] == number).all():
                raise SpoolError(f"records of another type than {name}")
        for name in TIMED:
            if name in self._records:
                records = self._records[name]
                start, end, kind = records["start"], records["end"], records["domain"]
                good = (start > 0) & (start <= end) & (end <= LATEST)
                known = (
                    kind == _NATIVE_SAMPLE
                    if name == "cpu_sample"
                    else np.isin(kind, _STATES)
                    if name == "cpu_state"
                    else good
                )
                if not (good & known).all():
                    raise SpoolError(f"odd records of {name}")

    def _last(self, *names: str) -> Int64Array:
        """Return when the last of these records of each member ended (ns); 0 where it has none."""
        last = np.zeros(self._count, np.int64)
        for name in names:
            if name in self._records:
                np.maximum.at(last, self._owner[name], self._records[name]["end"].astype(np.int64))
        return last

    def _number_strings(self, members: Sequence[Small]) -> Strings:
        known: dict[tuple[bytes, ...], tuple[int, int]] = {}
        texts: dict[str, int] = {}
        numbers: list[int] = []
        for member in members:
            if member.strings not in known:
                local = _texts(member.strings)
                known[member.strings] = len(numbers), len(local)
                numbers += [0 if text is None else texts.setdefault(text, len(texts) + 1) for text in local]
        base, size = (
            np.array([known[member.strings][which] for member in members], np.int64) for which in (0, 1)
        )
        table = np.array(numbers, np.uint32)
        for name, records in self._records.items():
            owner = self._owner[name]
            for field in ("name", *_STRINGS.get(name, ())):
                local_id = records[field].astype(np.int64)
                records[field] = table[base[owner] + np.where(local_id < size[owner], local_id, 0)]
        return Strings.of(list(texts))

    def _notices(self) -> dict[int, list[tuple[int, str, int, int]]]:
        """Return of each member what it notes: number, text, value and time (ns)."""
        by_member: dict[int, list[tuple[int, str, int, int]]] = {}
        records = self._records.pop("cpu_notice", None)
        if records is not None:
            columns = (records[field].tolist() for field in ("notice", "name", "value", "start"))
            for owner, number, name, value, start in zip(
                self._owner["cpu_notice"].tolist(), *columns, strict=True
            ):
                by_member.setdefault(owner, []).append((number, self.strings.get(name) or "", value, start))
        return by_member

    def _number_threads(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Give each thread a number from 1 on in place of its system id.

        Threads of a member get the numbers that they would have alone.

        Returns of each the member, the system id and when it was first seen (ns).
        """
        keys, ranks, starts = [], [], []
        for rank, name in enumerate(TIMED):
            if (records := self._inside(name)) is not None:
                keys.append(self._owner[name].astype(np.int64) << 32 | records["tid"])
                ranks.append(np.full(len(records), rank, np.int64))
                starts.append(records["start"].astype(np.int64))
        if not keys:
            return (np.empty(0, np.int64),) * 3
        key, rank_of, start = np.concatenate(keys), np.concatenate(ranks), np.concatenate(starts)
        used, first = np.unique(
            key, return_index=True
        )  # the first one is of the kind that numbers it: kinds come in their order
        number = np.empty(len(used), np.int64)
        # In order of member, then of the kind of record that names the thread first, then of system
        # id: the order in which each member would have numbered its threads alone.
        number[np.lexsort((used, rank_of[first], used >> 32))] = np.arange(1, len(used) + 1)
        for name, mine in zip((name for name in TIMED if name in self._records), keys, strict=True):
            self._records[name]["tid"] = number[np.searchsorted(used, mine)]
        begin = np.full(len(used), LATEST, np.int64)
        np.minimum.at(begin, np.searchsorted(used, key), start)
        place = np.argsort(number)
        return (used >> 32)[place], (used & 0xFFFFFFFF)[place], begin[place]

    def _inside(self, name: str) -> Records | None:
        """Return the records of a type that a window lets in; others are given up."""
        records = self._records.get(name)
        if records is not None and self.bounds.windows is not None:
            start, end = records["start"].astype(np.int64), records["end"].astype(np.int64)
            inside = np.zeros(len(records), bool)
            for begin, close in self.bounds.windows:
                inside |= (np.maximum(end, start + 1) > begin) & (start < close)
            if not inside.all():
                self._records[name], self._owner[name] = records, owner = (
                    records[inside],
                    self._owner[name][inside],
                )
                if not len(owner):
                    del self._records[name]
                    return None
        return records

    def _number_stacks(self) -> Int64Array:
        """Let the stacks of each member follow those of the one before.

        Return what lies before those of each (one more at the end).
        """
        most = np.zeros(self._count, np.int64)
        frames = self._records.get("cpu_frame")
        if frames is not None:
            owner, node = self._owner["cpu_frame"], frames["node"].astype(np.int64)
            np.maximum.at(most, owner, node)
            if not (node > 0).all() or int(most.max()) > MOST:
                raise SpoolError("odd stacks")
        # Members with up to 5 and 3 stacks have the bases [0, 5, 8]: stack 2 of the second member
        # becomes 7. 0 stays 0: it means no stack.
        base = np.concatenate([[0], np.cumsum(most)])
        for name, fields in (
            ("cpu_frame", ("node", "parent")),
            ("cpu_sample", ("stack",)),
            ("os_call", ("stack",)),
        ):
            if name in self._records:
                records, owner = self._records[name], self._owner[name]
                for field in fields:
                    number = records[field].astype(np.int64)
                    if (number > most[owner]).any():
                        raise SpoolError("stacks that were not written")
                    records[field] = np.where(number != 0, number + base[owner], 0)
        return base

    def _number_modules(self) -> None:
        """Give files with code numbers that all members share: each is looked into once."""
        modules, frames = self._records.get("cpu_module"), self._records.get("cpu_frame")
        if frames is None:
            return
        used = frames["module"] != 0
        key = self._owner["cpu_frame"].astype(np.int64) << 32 | frames["module"]
        if modules is None:
            if used.any():
                raise SpoolError("modules that were not written")
            return
        known, first = np.unique(
            self._owner["cpu_module"].astype(np.int64) << 32 | modules["module"], return_index=True
        )
        file = modules["name"][first].astype(np.int64) << 32 | modules["build_id"][first]
        distinct, row, number = np.unique(file, return_index=True, return_inverse=True)
        place = np.minimum(np.searchsorted(known, key), len(known) - 1)
        if (known[place] != key)[used].any():
            raise SpoolError("modules that were not written")
        frames["module"] = np.where(used, number.reshape(-1)[place] + 1, 0)
        modules = modules[first][row]
        modules["module"] = np.arange(1, len(distinct) + 1)
        self._records["cpu_module"] = modules

    def _wide(self) -> dict[str, WideRecords]:
        size = sum(records.nbytes for records in self._records.values())
        mapped = mmap.mmap(
            -1, max(size, 1)
        )  # shared memory: it keeps what it holds when its pages are given back
        memory = np.frombuffer(mapped, np.uint8)
        at = 0
        made = {}
        for name, records in self._records.items():
            number, dtype = self._layouts[name]
            memory[at : at + records.nbytes] = records.view(np.uint8)
            chunk = Chunk(
                chunking.WIDE,
                dtype.itemsize,
                chunking.NO_THREAD,
                offset=at,
                size=records.nbytes,
                record=number,
            )
            made[name] = WideRecords.of(memory, mapped, dtype, number=number, chunks=[chunk])
            at += records.nbytes
        return made


def _layouts(members: Sequence[Small]) -> dict[str, tuple[int, np.dtype[Any]]]:
    """Return number and layout of each type of record: all members have those of the first."""
    return {name: (number, dtype) for number, (name, dtype) in members[0].layouts.wide.items()}


@lru_cache(maxsize=256)
def _texts(contents: tuple[bytes, ...]) -> list[str | None]:
    """Return the strings of chunks by their numbers; processes of one program often have the same.

    SpoolError if some are damaged.
    """
    memory = np.frombuffer(b"".join(contents), np.uint8)
    edges = np.cumsum([0, *map(len, contents)]).tolist()
    chunks = [
        Chunk(chunking.STRINGS, 0, chunking.NO_THREAD, offset=at, size=len(content))
        for at, content in zip(edges, contents, strict=False)
    ]
    strings = Strings(memory, chunks)
    if strings.broken:
        raise SpoolError("damaged strings")
    return [strings.get(number) for number in range(len(strings.lookup))]
