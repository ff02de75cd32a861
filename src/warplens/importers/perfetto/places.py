"""Maps each track to a process, thread and task, with their keys in the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from warplens.arrays import Int64Array, int32
from warplens.importers.perfetto import own as owns
from warplens.importers.perfetto import wire
from warplens.importers.perfetto.descriptors import Described
from warplens.importers.perfetto.trace import ASYNC, NAMED, QUEUE, THREAD, UUID, PerfettoTrace
from warplens.storage.writer import THREADS_PER_PROCESS, PartWriter

NONE = -1
_TASKS_PER_PROCESS = 1 << 32
_START_END = "start/end ranges"


@dataclass
class _TrackProcess:
    pid: int
    name: str
    threads: dict[int, int] = field(default_factory=dict)  # tid -> number
    tasks: int = 0


@dataclass(frozen=True)
class TrackPlace:
    """Destination of the events of a track.

    `task`, `thread` may be NONE; `about`: what warplens says that the track shows.
    """

    process: int
    thread: int
    task: int = NONE
    about: Any = None
    loose: bool = False  # ranges need not nest: start/end


class TrackPlaces:
    """The places of all tracks that have events, and the rows of `processes`, `threads` and `tasks`."""

    def __init__(self, trace: PerfettoTrace, described: Described, own: owns.Own, part: PartWriter) -> None:
        self._trace, self._described, self._own, self._part = trace, described, own, part
        self._processes: dict[Any, tuple[int, _TrackProcess]] = {}
        self.process_rows: list[dict[str, Any]] = []
        self.thread_rows: list[dict[str, Any]] = []
        self.task_rows: list[dict[str, Any]] = []
        self._own_keys: dict[tuple[str, int, int], int] = {}
        self._take_own()
        happens, counts = (np.zeros(len(trace.tracks["kind"]), bool) for _ in range(2))
        happens[trace.events["track"]] = True
        counts[trace.samples["track"]] = True
        self._tasks: dict[Any, int] = {}
        self.of: list[TrackPlace | None] = [
            self._place(track) if happens[track] else self._counter(track) if counts[track] else None
            for track in range(len(counts))
        ]

    def column(self, name: str) -> Int64Array:
        """Return a field of the places of all tracks, NONE where a track has no place."""
        return np.array([NONE if place is None else getattr(place, name) for place in self.of], np.int64)

    def key(self, what: str, report: int, old: Any) -> int:
        """Return the key of a `process`, `thread` or `task` of a report in the trace.

        NONE where it is of none.
        """
        return self._own_keys.get((what, report, old), NONE) if isinstance(old, int) else NONE

    def process_of(self, pid: int) -> int:
        """Return the key of the process with a pid."""
        return self._process(pid)[0]

    def thread_of(self, pid: int, tid: int) -> int:
        """Return the key of a thread."""
        return self._thread(pid, tid)

    def finish(self, first: int, last: int, host: str) -> None:
        """Write the rows; `first`, `last`: when the trace began and ended.

        Of a trace without a process there is one all the same.
        """
        if not self.process_rows:
            self._process(0)
        for row in self.process_rows:
            row.setdefault("start", first)
            row.setdefault("end", last)
            row.setdefault("host", host)
        for row in (*self.thread_rows, *self.task_rows):
            row.setdefault("start", first)
        self._part.write("processes", self.process_rows)
        self._part.write("threads", sorted(self.thread_rows, key=lambda row: int(row["thread"])))
        self._part.write("tasks", sorted(self.task_rows, key=lambda row: int(row["task"])))

    def _take_own(self) -> None:
        """Give the processes, threads and tasks of reports in the trace their keys."""
        for number, row in sorted(
            self._own.rows("processes"), key=lambda entry: (entry[0], _number(entry[1].get("process")))
        ):
            key = self._part.key(len(self.process_rows))
            self._own_keys["process", number, _number(row.get("process"))] = key
            pid = _number(row.get("pid"))
            self._processes.setdefault(pid, (key, _TrackProcess(pid, str(row.get("name") or pid))))
            self.process_rows.append(
                {**_blank(pid, ""), **_known("processes", row), "process": key, "parent": None}
            )
        for number, row in self._own.rows("processes"):
            parent = self.key("process", number, row.get("parent"))
            key = self.key("process", number, row.get("process"))
            if parent != NONE:
                next(made for made in self.process_rows if made["process"] == key)["parent"] = parent
        for table, per, rows in (
            ("thread", THREADS_PER_PROCESS, self.thread_rows),
            ("task", _TASKS_PER_PROCESS, self.task_rows),
        ):
            for number, row in sorted(
                self._own.rows(f"{table}s"), key=lambda entry: (entry[0], _number(entry[1].get(table)))
            ):
                process = self.key("process", number, row.get("process"))
                if process == NONE:
                    continue
                count = _number(row.get(table)) % per
                key = self._own_keys[table, number, _number(row.get(table))] = process * per + count
                made = {**_known(f"{table}s", row), table: key, "process": process}
                if table == "task":
                    made["thread"], made["parent"] = self.key("thread", number, row.get("thread")), None
                    made.setdefault("library", "asyncio")
                else:
                    made["tid"] = _number(row.get("tid"))
                    entry = next((known for known in self._processes.values() if known[0] == process), None)
                    if entry is not None:
                        entry[1].threads[made["tid"]] = count
                rows.append(made)

    def _place(self, track: int) -> TrackPlace:
        kind, uuid = int(self._trace.tracks["kind"][track]), int(self._trace.tracks["first"][track])
        if kind == UUID and uuid in self._own.tracks:
            return self._own_place(uuid)
        if kind == THREAD:
            pid, tid = wire.signed(uuid), wire.signed(int(self._trace.tracks["second"][track]))
            return TrackPlace(self.process_of(pid), self._thread(pid, tid))
        if kind == QUEUE:
            return TrackPlace(self.process_of(int(self._trace.tracks["third"][track]) >> 32), NONE)
        if kind == ASYNC:
            name = self._trace.text(int(self._trace.tracks["name"][track])) or "async"
            return self._beside(wire.signed(uuid), None, name, key=("async", track))
        above = self._described.above(uuid)
        thread = next((upper for upper in above if upper.tid is not None), None)
        pid = next((upper.pid for upper in above if upper.pid is not None), 0)
        if thread is not None and thread.tid is not None and thread.pid is not None:
            if above[0] is thread:
                return TrackPlace(self.process_of(thread.pid), self._thread(thread.pid, thread.tid))
            pid = thread.pid
        names = [upper.name or "track" for upper in above if upper.pid is None]
        below = None if thread is None else thread.tid
        if above and above[0].pid is not None and above[0].tid is None:
            names = ["process"]  # events on the process itself
        return self._beside(pid or 0, below, " / ".join(reversed(names)) or "track", key=uuid)

    def _counter(self, track: int) -> TrackPlace | None:
        """Return the place of a track of numbers; None where it is a whole device's."""
        uuid = int(self._trace.tracks["first"][track])
        if self._trace.tracks["kind"][track] == NAMED:
            return TrackPlace(self.process_of(wire.signed(uuid)), NONE)
        if uuid in self._own.counters:
            process = self.key("process", self._own.which[uuid], self._own.counters[uuid].get("process"))
            if process == NONE and "metric" in self._own.counters[uuid]:
                return None
            if process != NONE:
                return TrackPlace(process, NONE)
        return TrackPlace(self.process_of(self._described.process_of(uuid) or 0), NONE)

    def _own_place(self, uuid: int) -> TrackPlace:
        about, number = self._own.tracks[uuid], self._own.which[uuid]
        process = self.key("process", number, about.get("process"))
        if process == NONE:
            process = self.process_of(0)
        thread, task = (self.key(what, number, about.get(what)) for what in ("thread", "task"))
        loose = thread == NONE and "context" not in about
        return TrackPlace(process, thread, task, about={**about, "report": number}, loose=loose)

    def _beside(self, pid: int, tid: int | None, name: str, key: Any) -> TrackPlace:
        """Return the place of a track that is no thread's.

        A task of the thread that it is below, else of the process's first.
        """
        process, state = self._process(pid)
        main = (
            pid
            if pid in state.threads or not state.threads
            else min(state.threads, key=lambda known: state.threads[known])
        )
        thread = self._thread(pid, main if tid is None else tid)
        if key not in self._tasks:
            state.tasks += 1
            self._tasks[key] = process * _TASKS_PER_PROCESS + (1 << 24) + state.tasks
            self.task_rows.append(
                {
                    "task": self._tasks[key],
                    "process": process,
                    "thread": thread,
                    "name": name,
                    "library": "track",
                }
            )
        return TrackPlace(process, thread, self._tasks[key])

    def _process(self, pid: int) -> tuple[int, _TrackProcess]:
        if pid not in self._processes:
            key = self._part.key(len(self.process_rows))
            name = self._described.processes.get(pid) or (f"process {pid}" if pid else "trace")
            self._processes[pid] = key, _TrackProcess(pid, name)
            command = self._described.commands.get(pid, "")
            self.process_rows.append(
                {
                    **_blank(pid, name),
                    "process": key,
                    "command": command,
                    "parent_pid": self._described.parents.get(pid, 0),
                }
            )
        return self._processes[pid]

    def _thread(self, pid: int, tid: int) -> int:
        process, state = self._process(pid)
        if tid not in state.threads:
            number = state.threads[tid] = max(state.threads.values(), default=-1) + 1
            name = self._described.threads.get((pid, tid))
            key = process * THREADS_PER_PROCESS + number
            self.thread_rows.append({"thread": key, "process": process, "tid": int32(tid), "name": name})
        return process * THREADS_PER_PROCESS + state.threads[tid]


def _blank(pid: int, name: str) -> dict[str, Any]:
    short = PurePath(name).name or None
    never = {
        "parent_pid": 0,
        "primary": False,
        "exited": True,
        "command": "",
        "executable": name,
        "recorded": True,
    }
    return {"pid": int32(pid), "name": short, **never}


def _known(table: str, row: dict[str, Any]) -> dict[str, Any]:
    from warplens.model.tables import TABLES

    return {column.name: row[column.name] for column in TABLES[table].columns if column.name in row}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
