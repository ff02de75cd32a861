"""The processes, threads, tasks and GPUs of a report, with the names that people know them by."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.timeline.names import (
    context_label,
    gpu_label,
    rank_label,
    stream_label,
    task_label,
    thread_label,
)

if TYPE_CHECKING:
    from warplens.report.report import Report


@dataclass(frozen=True)
class Inside:
    """The in-kernel regions of kernels of one name on a stream.

    `context` is None if their kernels were not recorded.
    """

    name: str
    device: int | None
    context: int | None
    stream: int | None


@dataclass(frozen=True)
class HostGpu:
    """A GPU of a host, whichever processes use it.

    `number`: how CUDA numbers it in the first of them; `key` is unique in the report.
    """

    key: str
    host: str
    number: int
    name: str
    uuid: str | None

    @property
    def id(self) -> str:
        """The text that distinguishes it from others of its host."""
        return self.key.partition("/")[2]


_Row = dict[str, Any]


@dataclass(eq=False)
class Entities:
    """The rows of processes, threads, tasks, devices, contexts and streams, by their keys."""

    processes: dict[int, _Row]
    threads: dict[int, _Row]
    tasks: dict[int, _Row]
    contexts: dict[tuple[int, int], _Row]
    streams: dict[tuple[int, int, int], _Row]
    devices: dict[tuple[int, int], _Row]
    insides: dict[tuple[int, int], Inside]
    of_manifests: list[str]  # hosts
    _gpus: dict[str, HostGpu] = field(default_factory=dict)
    _users: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, report: Report) -> Entities:
        """Return those of a report."""

        def rows(table: str) -> list[_Row]:
            records: list[_Row] = report.table(table).to_pylist()
            return records

        return cls(
            {row["process"]: row for row in rows("processes")},
            {row["thread"]: row for row in rows("threads")},
            {row["task"]: row for row in rows("tasks")},
            contexts={(row["process"], row["context"]): row for row in rows("contexts")},
            streams={(row["process"], row["context"], row["stream"]): row for row in rows("streams")},
            devices={(row["process"], row["device"]): row for row in rows("devices")},
            insides=_insides(report),
            of_manifests=[manifest.host for manifest in report.manifests],
        )

    @cached_property
    def hosts(self) -> list[str]:
        """The hosts, those of the parts first."""
        return list(dict.fromkeys([*self.of_manifests, *map(self.host, self.processes)]))

    def host(self, process: int | None) -> str:
        """Return the host of a process; empty if it is not known."""
        return str((self.processes.get(process if process is not None else -1) or {}).get("host") or "")

    def rank(self, process: int | None) -> int | None:
        """Return the rank of a process."""
        number: int | None = (self.processes.get(process if process is not None else -1) or {}).get("rank")
        return number

    def process_name(self, process: int) -> tuple[str, str]:
        """Return what a process is called, and the grey words beside it."""
        row = self.processes.get(process)
        if row is None:
            return f"process {process}", ""
        name = row.get("name") or Path(row["executable"] or "").name or row["command"] or "process"
        return f"{rank_label(row)}{name}", f"pid {row['pid']}"

    def thread_name(self, thread: int) -> tuple[str, str]:
        """Return what a thread is called, and the grey words beside it."""
        row = self.threads.get(thread)
        if row is None:
            return f"thread {thread}", ""
        process = self.processes.get(row["process"])
        main = process is not None and process["pid"] == row["tid"]
        detail = f"{'main, ' if main else ''}tid {row['tid']}"
        return ("main" if main and not row["name"] else thread_label(row)), detail

    def task_name(self, task: int) -> tuple[str, str]:
        """Return what a task is called, and the library that it is of."""
        row = self.tasks.get(task)
        return (f"task {task}", "") if row is None else (task_label(row), row["library"] or "")

    def context_name(self, process: int, context: int) -> str:
        """Return what a context is called."""
        return context_label(context, self.contexts.get((process, context)))

    def stream_name(self, process: int, context: int, stream: int) -> str:
        """Return what a stream is called."""
        return stream_label(stream, self.streams.get((process, context, stream)))

    def device_of(self, process: int, context: int | None, device: int | None) -> int | None:
        """Return CUDA's number of the device; where a row does not say it, that of its context."""
        if device is not None or context is None:
            return device
        number: int | None = (self.contexts.get((process, context)) or {}).get("device")
        return number

    def gpu(self, process: int, device: int | None) -> HostGpu:
        """Return the GPU that a process numbers so: one and the same for all processes that see its UUID."""
        row = self.devices.get((process, -1 if device is None else device)) or {}
        host, uuid = self.host(process), row.get("uuid")
        number = -1 if device is None else device
        key = f"{host}/{uuid}" if uuid else f"{host}/{process}/{number}"
        return self._gpus.setdefault(
            key, HostGpu(key, host, number, name=gpu_label(device, row.get("name")), uuid=uuid)
        )

    def users(self, gpu: HostGpu) -> list[int]:
        """Return the processes that see a GPU."""
        if not self._users:
            for process, device in self.devices:
                self._users.setdefault(self.gpu(process, device).key, []).append(process)
        return self._users.get(gpu.key, [])

    def gpu_by_uuid(self, host: str, number: int, uuid: str | None) -> HostGpu:
        """Return the GPU of a host's own numbering, as metrics have it."""
        for row in self.devices.values():
            if uuid and row.get("uuid") == uuid:
                return self.gpu(row["process"], row["device"])
        key = f"{host}/{uuid or f'gpu{number}'}"
        return self._gpus.setdefault(key, HostGpu(key, host, number, name=gpu_label(number, None), uuid=uuid))


def _insides(report: Report) -> dict[tuple[int, int], Inside]:
    """Return the groups of launches that timed themselves, by process and the row of their first launch."""
    if not report.tables["intrakernel_launches"]:
        return {}
    rows = report.sql(
        """SELECT l.process, min(l.id) & 4294967295 AS row, l.name, l.device, l.stream, min(k.context) AS context
           FROM intrakernel_launches l LEFT JOIN kernels k ON k.id = l.kernel GROUP BY l.process, l.device, l.stream, l.name"""
    )
    insides = {}
    for row in rows.to_pylist():
        insides[row["process"], row["row"]] = Inside(
            row["name"] or "kernel", row["device"], row["context"], stream=row["stream"]
        )
    return insides
