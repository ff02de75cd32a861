"""Puts ranges on tracks that nest.

One per thread (push/pop), process (start/end ranges) and task; more where they overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.analysis.dictionaries import codes
from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.report.row_groups import stream
from warplens.timeline.names import rank_label, task_label, thread_label

if TYPE_CHECKING:
    from warplens.report import Report

RANGE_COLUMNS = (
    *("id", "process", "thread", "start", "end", "domain", "category", "category_id", "message", "color"),
    *("payload_int", "payload_float", "style", "parent", "unfinished", "inherited", "clipped"),
)
MARK_COLUMNS = (
    "id",
    "process",
    "thread",
    "start",
    "domain",
    "category",
    "category_id",
    "message",
    "color",
    "payload_int",
    "payload_float",
)
# Above any pid or tid of Linux (at most 2^22): tells apart equal ids of several hosts.
_ID_STEP = 1 << 22


@dataclass(frozen=True)
class ExportProcess:
    """A process; `pid` is unique within the export."""

    key: int
    pid: int
    name: str
    command: str


@dataclass(frozen=True)
class Thread:
    """A thread; `process` is the position of its process."""

    key: int
    process: int
    tid: int
    name: str


@dataclass(frozen=True)
class Task:
    """A task; `thread` is the position of the thread it was first seen on."""

    key: int
    thread: int
    name: str


class Tracks:
    """The processes, threads and tasks of a report.

    Families of tracks: thread i is family i, process p's start/end ranges T + p, task k's ranges and marks T + P + k.
    """

    def __init__(
        self, report: Report, processes: list[ExportProcess], threads: list[Thread], *, tasks: list[Task]
    ) -> None:
        self._report, self.processes, self.threads, self.tasks = report, processes, threads, tasks
        self._task_keys, self._process_keys, self._thread_keys = (
            np.array([one.key for one in some], np.int64) for some in (tasks, processes, threads)
        )

    @classmethod
    def of(cls, report: Report) -> Tracks:
        """Return those of a report; ReportError if its tables do not fit together."""
        processes, steps = _processes(report)
        threads = _threads(report, {process.key: at for at, process in enumerate(processes)}, steps)
        tasks = _tasks(report, {thread.key: at for at, thread in enumerate(threads)})
        return cls(report, processes, threads, tasks=tasks)

    @property
    def families(self) -> int:
        """The number of families of tracks."""
        return len(self.threads) + len(self.processes) + len(self.tasks)

    @property
    def first_task(self) -> int:
        """The family of the first task."""
        return len(self.threads) + len(self.processes)

    def columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns to read of ranges or marks: reports without tasks spare that column."""
        return (*columns, "task") if self.tasks else columns

    def owner(self, family: int) -> tuple[ExportProcess, Thread | None]:
        """Return the process of a family, and the thread where it is a thread's or a task's."""
        if family >= self.first_task:
            family = self.tasks[family - self.first_task].thread
        if family < len(self.threads):
            thread = self.threads[family]
            return self.processes[thread.process], thread
        return self.processes[family - len(self.threads)], None

    def task(self, family: int) -> Task | None:
        """Return the task of a family, if it is a task's."""
        return self.tasks[family - self.first_task] if family >= self.first_task else None

    def family(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Return each row's family; marks (rows without a style) belong to their thread."""
        of_threads = np.ones(batch.num_rows, bool)
        if "style" in batch.schema.names:
            numbers, texts = codes(batch.column("style"))
            of_threads = np.isin(
                numbers,
                [index for index, text in enumerate(texts.to_pylist()) if text == "StartEnd"],
                invert=True,
            )
        family = np.empty(batch.num_rows, np.int32)
        family[of_threads] = self._find("thread", self._thread_keys, values(batch, "thread")[of_threads])
        if not of_threads.all():
            processes = self._find("process", self._process_keys, values(batch, "process")[~of_threads])
            family[~of_threads] = processes + len(self.threads)
        if "task" in batch.schema.names:
            tasks = batch.column("task")
            if tasks.null_count < len(tasks):
                there = tasks.is_valid().to_numpy(zero_copy_only=False)
                family[there] = (
                    self._find("task", self._task_keys, values(batch, "task")[there]) + self.first_task
                )
        return family

    def _find(self, what: str, keys: Int64Array, wanted: Int64Array) -> Int64Array:
        """Return the places of keys.

        The native encoders index with them: ReportError for a key that is not there.
        """
        places = np.searchsorted(keys, wanted)
        known = places < len(keys)
        known[known] = keys[places[known]] == wanted[known]
        if not known.all():
            raise ReportError(
                f"{self._report.path} is broken: its ranges and marks name the {what} {wanted[~known][0]}, which it lacks"
            )
        return places


class NestingLanes:
    """Places ranges on lanes within their family, so that each lane's ranges nest.

    Lane 0 is the family's own track.
    """

    def __init__(self, families: int) -> None:
        self._lanes = native.make("lanes_new", families)

    def __enter__(self) -> NestingLanes:
        return self

    def __exit__(self, *_: object) -> None:
        self._lanes.close()

    def add(self, batch: pa.RecordBatch, family: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the lane of each row; batches come in the order of the report."""
        return self.place(
            family,
            values(batch, "id"),
            values(batch, "parent", -1),
            values(batch, "start"),
            values(batch, "end"),
        )

    def place(self, family: npt.NDArray[np.int32], *columns: Int64Array) -> npt.NDArray[np.int32]:
        """Return the lane of each event, from id, parent (-1: none), start and end."""
        lane = np.empty(len(family), np.int32)
        native.call("lanes_add", self._lanes, family, *columns, lane)
        return lane


def batches(
    report: Report, table: str, columns: Sequence[str], *, most: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield a table in pieces of at most `most` rows, in the order of the report.

    For callers that make Python objects.
    """
    for rows in stream(report, table, columns):
        yield from rows.to_batches(max_chunksize=most)


def values(batch: pa.RecordBatch, name: str, missing: int = 0) -> Int64Array:
    """Return an integer column as contiguous int64, nulls as `missing`."""
    column = batch.column(name)
    filled = pc.fill_null(column, missing) if column.null_count else column
    return np.ascontiguousarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _processes(report: Report) -> tuple[list[ExportProcess], list[int]]:
    """Return the processes, and what is added to the ids of each, so that those of two with one pid differ."""
    columns = ["process", "pid", "host", "rank", "executable", "command", "recorded"]
    # of a large build there are thousands that have nothing to show
    rows = [row for row in report.table("processes", columns).to_pylist() if row["recorded"] is not False]
    hosts = {row["host"] for row in rows}
    seen: dict[int, int] = {}
    steps: list[int] = []
    processes = []
    for row in sorted(rows, key=lambda row: int(row["process"])):
        step = seen[row["pid"]] = seen.get(row["pid"], -1) + 1
        steps.append(step * _ID_STEP)
        where = f" ({row['host']})" if len(hosts) > 1 else ""
        name = f"{rank_label(row)}{Path(row['executable']).name or row['pid']}{where}"
        processes.append(ExportProcess(row["process"], row["pid"] + steps[-1], name, command=row["command"]))
    return processes, steps


def _threads(report: Report, place: dict[int, int], steps: list[int]) -> list[Thread]:
    rows = report.table("threads", ["thread", "process", "tid", "name"]).to_pylist()
    for row in rows:
        if row["process"] not in place:
            raise ReportError(
                f"{report.path} is broken: the thread {row['thread']} belongs to no process of the report"
            )
    return [
        Thread(
            row["thread"],
            place[row["process"]],
            row["tid"] + steps[place[row["process"]]],
            name=thread_label(row),
        )
        for row in sorted(rows, key=lambda row: int(row["thread"]))
    ]


def _tasks(report: Report, place: dict[int, int]) -> list[Task]:
    rows = report.table("tasks", ["task", "thread", "name", "library"]).to_pylist()
    for row in rows:
        if row["thread"] not in place:
            raise ReportError(
                f"{report.path} is broken: the task {row['task']} belongs to no thread of the report"
            )
    return [
        Task(row["task"], place[row["thread"]], task_label(row))
        for row in sorted(rows, key=lambda row: int(row["task"]))
    ]
