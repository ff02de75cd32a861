"""Processes and threads: nsys' 64-bit global ids become keys of the report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
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
    """Times of the first and last event of a process or thread (ns)."""

    first: int
    last: int

    def add(self, first: int, last: int) -> None:
        """Let it reach to these times too."""
        self.first, self.last = min(self.first, first), max(self.last, last)


@dataclass
class NsysIdentity:
    """The processes and threads that did something.

    The others of the machine, which nsys lists too, are not taken over. `threads` and `processes`:
    when each did something, by global id; `keys` and `thread_keys`: theirs in the report.
    """

    database: Database
    part: PartWriter
    rank: int | None  # of the launched process, where the export says none
    threads: dict[int, Span]
    processes: dict[int, Span]
    keys: dict[int, int]
    thread_keys: dict[int, int]
    _known: bool  # the launched process did something

    def __post_init__(self) -> None:
        self._pids, self._process_keys = _sorted(self.keys)
        self._tids, self._keys_of_tids = _sorted(self.thread_keys)

    @classmethod
    def of(cls, database: Database, part: PartWriter, rank: int | None = None) -> NsysIdentity:
        """Return those of an export, the launched process first."""
        threads, processes = _seen(database)
        launched = _launched(database)
        order = sorted(processes, key=lambda pid: (pid != launched, processes[pid].first, pid))
        keys = {pid: part.key(number) for number, pid in enumerate(order)}
        thread_keys: dict[int, int] = {}
        for pid in order:
            mine = sorted(
                (tid for tid in threads if tid & _PROCESS_BITS == pid),
                key=lambda tid: (not _is_main(tid), tid),
            )
            thread_keys.update(
                {tid: keys[pid] * THREADS_PER_PROCESS + number for number, tid in enumerate(mine)}
            )
        return cls(
            database,
            part,
            rank,
            threads=threads,
            processes=processes,
            keys=keys,
            thread_keys=thread_keys,
            _known=launched in processes,
        )

    @property
    def first(self) -> int:
        """Time of the first event; 0 if there are no events."""
        return _reach(self.processes)[0]

    @property
    def last(self) -> int:
        """Time of the last event; 0 if there are no events."""
        return _reach(self.processes)[1]

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
        """Return the key of a process given in parts; None if it did nothing."""
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


def _seen(database: Database) -> tuple[dict[int, Span], dict[int, Span]]:
    """Return when each thread and each process did something."""
    threads: dict[int, Span] = {}
    processes: dict[int, Span] = {}
    more = [
        (table, "globalTid", _EVENTS, ())
        for table in sorted(database.tables)
        if table.startswith((_OPENMP, _OPENACC))
    ]
    for table, column, (start, end), where in (*_OF_THREADS, *more):
        if not database.has(table, *(condition.column for condition in where)):
            continue
        for key, first, last in database.grouped(table, column, start, end, where):
            _add(threads, key, first=first, last=last)
            _add(processes, key & _PROCESS_BITS, first=first, last=last)
    for table in (*_OF_PROCESSES, *_OVERHEADS):
        owner = "globalTid" if table in _OVERHEADS else "globalPid"
        for key, first, last in database.grouped(table, owner, "start", "end"):
            _add(processes, key & _PROCESS_BITS, first=first, last=last)
    events = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"  # older versions do not say when the GPU came to it
    for key, first, last in database.grouped(events, "globalPid", "timestamp", "timestamp"):
        _add(processes, key & _PROCESS_BITS, first=first, last=last)
    for (key,) in database.distinct(events, ("globalPid",)):
        processes.setdefault(key & _PROCESS_BITS, Span(*_reach(processes)))
    # Scheduled threads: those of processes with other events, or all if there are no others.
    known = set(processes)
    for key, first, last in database.grouped(_SCHEDULED, "globalTid", "start", "start"):
        if key & _PROCESS_BITS in known or (not known and key & 0xFFFFFF000000):
            _add(threads, key, first=first, last=last)
            _add(processes, key & _PROCESS_BITS, first=first, last=last)
    return threads, processes


def _add(spans: dict[int, Span], key: int, first: int, last: int) -> None:
    if key in spans:
        spans[key].add(first, last)
    else:
        spans[key] = Span(first, last)


def _reach(spans: dict[int, Span]) -> tuple[int, int]:
    """Return when anything was first and last seen; 0 if nothing was."""
    return min((span.first for span in spans.values()), default=0), max(
        (span.last for span in spans.values()), default=0
    )


def _launched(database: Database) -> int | None:
    """Return the process that nsys launched, by its global id."""
    if not database.has("DIAGNOSTIC_EVENT", "text", "globalPid"):
        return None
    rows = database.read("DIAGNOSTIC_EVENT", ["globalPid"], where=[Begins("text", _LAUNCHED)])
    return int(rows.ints("globalPid")[0]) & _PROCESS_BITS if len(rows) else None


def _sorted(keys: dict[int, int]) -> tuple[Int64Array, Int64Array]:
    """Return global ids in order, with the key of each."""
    ids = np.array(sorted(keys), np.int64)
    return ids, np.array([keys[one] for one in ids.tolist()], np.int64)


def _is_main(tid: int) -> bool:
    return tid & 0xFFFFFF == tid >> 24 & 0xFFFFFF
