"""Processes and threads: nsys' 64-bit global ids become keys of the report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.conditions import Among, Begins, Condition, Given
from warplens.importers.nsys.database import Database
from warplens.storage.writer import THREADS_PER_PROCESS, PartWriter

# A global id is hardware:8 virtual machine:8 process:24 thread:24.
_PROCESS_BITS = ~0xFFFFFF
_NVTX_EVENTS = Among("eventType", (34, 59, 60, 65, 70, 71))
_EVENTS = ("start", "end")
_OPENMP, _OPENACC = "OPENMP_EVENT_KIND_", "CUPTI_ACTIVITY_KIND_OPENACC_"
_OVERHEADS = (
    "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "CUPTI_ACTIVITY_KIND_JIT",
    "PROFILER_OVERHEAD",
)  # of a thread, or of the process
# Tables with what threads did: the column that says which, and those of the times.
_OF_THREADS: tuple[tuple[str, str, tuple[str, str], tuple[Condition, ...]], ...] = (
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid", _EVENTS, ()),
    ("NVTX_EVENTS", "globalTid", _EVENTS, (_NVTX_EVENTS,)),
    ("NVTX_EVENTS", "endGlobalTid", _EVENTS, (_NVTX_EVENTS, Given("endGlobalTid"))),
    *(
        (table, "globalTid", _EVENTS, (Among("globalTid", (0,), 0xFFFFFF, negated=True),))
        for table in _OVERHEADS
    ),
    *(
        (table, "globalTid", _EVENTS, ())
        for table in (
            *("OSRT_API", "SYSCALL", "COMPOSITE_EVENTS"),
            *(f"MPI_{kind}_EVENTS" for kind in ("P2P", "COLLECTIVES", "START_WAIT", "OTHER")),
        )
    ),
    (
        "OSRT_FILE_ACCESS_EVENTS",
        "threadId",
        ("startedAt", "endedAt"),
        (Among("threadId", (0,), ~0xFFFFFFFF, negated=True),),
    ),
)
_SCHEDULED = "SCHED_EVENTS"
_OF_PROCESSES = (
    *(
        f"CUPTI_ACTIVITY_KIND_{kind}"
        for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "GRAPH_TRACE")
    ),
    *(
        f"CUDA_{kind}_EVENTS"
        for kind in ("GPU_MEMORY_USAGE", "GPU_MEMORY_POOL", "UM_CPU_PAGE_FAULT", "UM_GPU_PAGE_FAULT")
    ),
)
_LAUNCHED = "Process was launched by the profiler"


@dataclass
class Span:
    """When a process or thread was first and last seen (ns)."""

    first: int
    last: int

    def add(self, first: int, last: int) -> None:
        """Let it reach to these times too."""
        self.first, self.last = min(self.first, first), max(self.last, last)


@dataclass
class NsysIdentity:
    """The processes and threads that did something.

    The others of the machine, which nsys lists too, are not taken over.
    """

    database: Database
    part: PartWriter
    rank: int | None = None  # of the launched process, where the export says none
    threads: dict[int, Span] = field(default_factory=dict)
    processes: dict[int, Span] = field(default_factory=dict)

    def __post_init__(self) -> None:
        more = [
            (table, "globalTid", _EVENTS, ())
            for table in sorted(self.database.tables)
            if table.startswith((_OPENMP, _OPENACC))
        ]
        for table, column, (start, end), where in (*_OF_THREADS, *more):
            if not self.database.has(table, *(condition.column for condition in where)):
                continue
            for key, first, last in self.database.grouped(table, column, start, end, where):
                self._add(self.threads, key, first=first, last=last)
                self._add(self.processes, key & _PROCESS_BITS, first=first, last=last)
        for table in (*_OF_PROCESSES, *_OVERHEADS):
            owner = "globalTid" if table in _OVERHEADS else "globalPid"
            for key, first, last in self.database.grouped(table, owner, "start", "end"):
                self._add(self.processes, key & _PROCESS_BITS, first=first, last=last)
        events = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"  # older versions do not say when the GPU came to it
        for key, first, last in self.database.grouped(events, "globalPid", "timestamp", "timestamp"):
            self._add(self.processes, key & _PROCESS_BITS, first=first, last=last)
        for (key,) in self.database.distinct(events, ("globalPid",)):
            self.processes.setdefault(key & _PROCESS_BITS, Span(self.first, self.last))
        self._add_scheduled()
        launched = self._launched()
        self._known = launched in self.processes
        order = sorted(self.processes, key=lambda pid: (pid != launched, self.processes[pid].first, pid))
        self.keys = {pid: self.part.key(number) for number, pid in enumerate(order)}
        self._pids = np.array(sorted(self.keys), np.int64)
        self._process_keys = np.array([self.keys[pid] for pid in self._pids.tolist()], np.int64)
        self.thread_keys: dict[int, int] = {}
        for pid in order:
            mine = sorted(
                (tid for tid in self.threads if tid & _PROCESS_BITS == pid),
                key=lambda tid: (not _is_main(tid), tid),
            )
            self.thread_keys.update(
                {tid: self.keys[pid] * THREADS_PER_PROCESS + number for number, tid in enumerate(mine)}
            )
        self._tids = np.array(sorted(self.thread_keys), np.int64)
        self._keys_of_tids = np.array([self.thread_keys[tid] for tid in self._tids.tolist()], np.int64)

    @property
    def first(self) -> int:
        """When anything was first seen; 0 where nothing was."""
        return min((span.first for span in self.processes.values()), default=0)

    @property
    def last(self) -> int:
        """When anything was last seen; 0 where nothing was."""
        return max((span.last for span in self.processes.values()), default=0)

    @cached_property
    def ranks(self) -> dict[int, int]:
        """The rank of each process that has one, by its global id."""
        rows = self.database.read("MPI_RANKS", ["globalTid", "rank"])
        return {
            tid & _PROCESS_BITS: rank
            for tid, rank in zip(rows.ints("globalTid").tolist(), rows.ints("rank").tolist(), strict=True)
        }

    def process(self, global_ids: Int64Array) -> Int64Array:
        """Return the process keys of global process or thread ids, all of which must have been seen."""
        return self._process_keys[np.searchsorted(self._pids, global_ids & _PROCESS_BITS)]

    def thread(self, global_ids: Int64Array) -> Int64Array:
        """Return the thread keys of global thread ids.

        Anything for those that have not been seen.
        """
        if not len(self._tids):
            return np.zeros(len(global_ids), np.int64)
        return self._keys_of_tids[np.minimum(np.searchsorted(self._tids, global_ids), len(self._tids) - 1)]

    def knows(self, global_ids: Int64Array) -> BoolArray:
        """Say which global thread ids have been seen."""
        return np.isin(global_ids, self._tids)

    def key_of(self, hardware: int, machine: int, pid: int) -> int | None:
        """Return the key of a process given in parts; None where it did nothing."""
        return self.keys.get(hardware << 56 | machine << 48 | pid << 24)

    def process_rows(self, hosts: dict[int, str], host: str, command: list[str]) -> list[dict[str, Any]]:
        """Return the rows of `processes`, that of the launched one, whose `command` is known, first.

        `hosts`: by machine; `host` is that of all others.
        """
        named = self.database.read("PROCESSES", ["globalPid"], texts=["name"])
        names = dict(zip(named.ints("globalPid").tolist(), named.texts("name").to_pylist(), strict=True))
        rows = []
        for pid, key in self.keys.items():
            span, primary = self.processes[pid], key == self.part.key(0)
            name = names.get(pid) or ""
            # What nsys launched may be a shell that did nothing itself: then the command is not this process's.
            mine = (
                primary
                and bool(command)
                and (self._known or command[0].rpartition("/")[2] == name.rpartition("/")[2])
            )
            rows.append(
                {
                    "process": key,
                    "pid": pid >> 24 & 0xFFFFFF,
                    "parent_pid": 0,
                    "host": hosts.get(pid & ~0xFFFFFFFFFFFF, host),
                    "rank": self.ranks.get(pid, self.rank if primary and not self.ranks else None),
                    "executable": command[0] if mine else name,
                    "command": shlex.join(command) if mine else name,
                    "start": span.first,
                    "end": span.last,
                    "primary": primary,
                    "exited": True,
                    "name": name.rpartition("/")[2] or None,
                    "recorded": True,
                }
            )
        return rows

    def thread_rows(self, given: dict[int, str]) -> list[dict[str, Any]]:
        """Return the rows of `threads`. `given`: names through NVTX, by global id."""
        rows = self.database.read("ThreadNames", ["nameId", "globalTid"])
        ids, tids = rows.ints("nameId"), rows.ints("globalTid")
        known = np.isin(tids, self._tids)
        strings = self.database.strings(np.unique(ids[known]))
        names = {
            tid: strings.get(number)
            for tid, number in zip(tids[known].tolist(), ids[known].tolist(), strict=True)
        }
        return [
            {
                "thread": key,
                "process": self.keys[tid & _PROCESS_BITS],
                "tid": tid & 0xFFFFFF,
                "name": given.get(tid) or names.get(tid),
                "start": self.threads[tid].first,
            }
            for tid, key in self.thread_keys.items()
        ]

    def _add(self, spans: dict[int, Span], key: int, first: int, last: int) -> None:
        if key in spans:
            spans[key].add(first, last)
        else:
            spans[key] = Span(first, last)

    def _add_scheduled(self) -> None:
        """Add scheduled threads: those of processes with other events, or all if there are no others."""
        seen = self.database.grouped(_SCHEDULED, "globalTid", "start", "start")
        known = set(self.processes)
        for key, first, last in seen:
            if key & _PROCESS_BITS in known or (not known and key & 0xFFFFFF000000):
                self._add(self.threads, key, first=first, last=last)
                self._add(self.processes, key & _PROCESS_BITS, first=first, last=last)

    def _launched(self) -> int | None:
        if not self.database.has("DIAGNOSTIC_EVENT", "text", "globalPid"):
            return None
        rows = self.database.read("DIAGNOSTIC_EVENT", ["globalPid"], where=[Begins("text", _LAUNCHED)])
        return int(rows.ints("globalPid")[0]) & _PROCESS_BITS if len(rows) else None


def _is_main(tid: int) -> bool:
    return tid & 0xFFFFFF == tid >> 24 & 0xFFFFFF
