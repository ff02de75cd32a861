"""Writes one part of a report: a Parquet file per table under a temporary name, then the manifest."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.disk.folder import Folder
from warplens.handover import pending
from warplens.model.cpu_tables import CPU_TABLES
from warplens.model.cuda_tables import CUDA_TABLES
from warplens.model.framework_tables import FRAMEWORK_TABLES
from warplens.model.intrakernel_tables import INTRAKERNEL_TABLES
from warplens.model.parallel_tables import PARALLEL_TABLES
from warplens.model.tables import TABLES
from warplens.storage import generations, schema
from warplens.storage import manifest as manifests
from warplens.storage.manifest import PROCESSES_PER_PART
from warplens.storage.row_group_order import reorder

DURING = ".during"  # of the names of files until they are whole
THREADS_PER_PROCESS = 1 << 24
RANGES_PER_PROCESS = 1 << 32
_VALUES = ("payload_int", "payload_float", "value_int", "value_float", "data", "json")
# Of large tables: nearly sorted, and without few distinct values.
_DELTAS = ("id", "start", "end", "parent", "event", "api", "correlation", "range", "stack", "launch", "unit")
_EVENTS = (*CUDA_TABLES, *CPU_TABLES, *FRAMEWORK_TABLES, *PARALLEL_TABLES, *INTRAKERNEL_TABLES)
_LARGE = {"payloads", *(table.name for table in _EVENTS if table.happens)}
_BY_ID = {"nvtx_ranges": "id", "ops": "range"}  # tables whose row groups may come late, and their ids
_STATISTICS = (
    "id",
    "process",
    "start",
    "end",
    "unfinished",
    "inherited",
    "clipped",
    "launch",
    "unit",
)  # what row groups are picked by


@dataclass(frozen=True)
class Facts:
    """What a manifest says about a run, beside its tables."""

    id: str
    host: str
    boot_id: str
    job: str | None = None
    command: Sequence[str] = ()
    origin: int = 0
    end: int = 0
    realtime_offset: int = 0
    exit_status: int | None = None
    clock: str = "monotonic"
    sources: Mapping[str, Any] | None = None
    usage: Mapping[str, int] | None = None


class PartWriter:
    """Collects the tables of one part; nothing is visible to readers before `commit`.

    A `snapshot` has its own files.

    `during`: it is written while the recording continues, for good; until `commit`, others may write snapshots, and the same part.
    """

    def __init__(
        self,
        report: str | os.PathLike[str],
        part_id: str,
        host: str,
        *,
        snapshot: bool = False,
        during: bool = False,
    ) -> None:
        self.report = Path(report)
        self._suffix = DURING if during else ".tmp"
        self.id = part_id
        self.host = pending.safe(host)
        with Folder(self.report, create=True) as folder:
            folder.folder(manifests.DIRECTORY, create=True).close()
        self.part = _claim(self.report, part_id)
        self._generation = generations.next_number(self.report, self.host, self.part) if snapshot else 0
        self._more_parts: list[int] = []
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._files: dict[str, BinaryIO] = {}
        self._rows: dict[str, int] = {}
        self._firsts: dict[str, list[int]] = {}  # what says where each row group of a table belongs
        if snapshot:
            self._writer(generations.FIRST)

    @property
    def first_process(self) -> int:
        """The first process key that belongs to this part."""
        return self.part * PROCESSES_PER_PART

    def key(self, number: int) -> int:
        """Return the key of the part's process `number`.

        A part with very many processes claims more numbers.
        """
        block, within = divmod(number, PROCESSES_PER_PART)
        while block > len(self._more_parts):
            self._more_parts.append(_claim(self.report, f"{self.id}+{len(self._more_parts) + 1}"))
        return (self._more_parts[block - 1] if block else self.part) * PROCESSES_PER_PART + within

    def write(self, table: str, rows: pa.Table | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Append rows as one row group (Arrow table, columns or row dictionaries)."""
        data = rows if isinstance(rows, pa.Table) else schema.build(table, rows)
        if data.num_rows:
            self._writer(table).write_table(data, row_group_size=max(data.num_rows, 1))
            if (place := _places(table, during=self._suffix == DURING)) is not None:
                self._firsts.setdefault(table, []).append(data.column(place)[0].as_py())
        self._rows[table] = self._rows.get(table, 0) + data.num_rows

    def close_table(self, table: str) -> Path:
        """Finish the file of a table with rows, order its row groups, and return its place until `commit`."""
        writer = self._writers.pop(table, None)
        if writer is not None:
            writer.close()
            self._files[table].flush()
            firsts = self._firsts.get(table, [])
            order = sorted(range(len(firsts)), key=firsts.__getitem__)
            if order != list(range(len(firsts))):
                reorder(self._files[table], order)
        return self.report / self._temporary(table)

    def commit(self, facts: Facts, snapshot: int | None = None) -> manifests.Manifest:
        """Finish every file, give it its name, and write the manifest: now the part exists.

        `snapshot`: as in the manifest.
        """
        for name in TABLES:
            if self._rows.get(name):
                self.close_table(name)
            elif name in self._writers:
                self._writers[name].close()
        _sync(file for name, file in self._files.items() if self._rows.get(name))
        tables = {}
        with Folder(self.report) as folder:
            for name in TABLES:
                if name in self._files:
                    self._files.pop(name).close()
                    folder.rename(self._temporary(name), self._file(name))
                else:
                    with folder.create(self._file(name), again=True) as file:
                        file.write(_empty(name))
                tables[name] = {"file": self._file(name), "rows": self._rows.get(name, 0)}
        self._writers = {}
        manifest = manifests.Manifest(
            part=self.part,
            id=self.id,
            host=facts.host,
            boot_id=facts.boot_id,
            job=facts.job,
            command=list(facts.command),
            origin=facts.origin,
            end=facts.end,
            realtime_offset=facts.realtime_offset,
            exit_status=facts.exit_status,
            clock=facts.clock,
            sources=dict(facts.sources or {}),
            usage=dict(facts.usage or {}),
            tables=tables,
            snapshot=snapshot,
        )
        manifests.write(self.report, manifest)
        return manifest

    def abandon(self) -> None:
        """Remove what was written under temporary names.

        The claimed number stays with this part.
        """
        for writer in self._writers.values():
            try:
                writer.close()
            except (OSError, pa.ArrowException):
                pass  # a full disk fails again here; the file goes anyway
        with Folder(self.report) as folder:
            for name, file in self._files.items():
                try:
                    file.close()
                except OSError:
                    pass
                folder.remove(self._temporary(name))
        self._writers, self._files = {}, {}

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abandon()

    def _file(self, table: str) -> str:
        return generations.file_name(table, self.host, self.part, generation=self._generation)

    def _temporary(self, table: str) -> str:
        return f"{self._file(table)}{self._suffix}"

    def _writer(self, table: str) -> pq.ParquetWriter:
        writer = self._writers.get(table)
        if writer is None:
            writer = open_parquet(self._open(table), table)
            self._writers[table] = writer
        return writer

    def _open(self, table: str) -> BinaryIO:
        with Folder(self.report) as folder:
            self._files[table] = folder.create(
                self._temporary(table), again=True
            )  # closed by commit or abandon
        return self._files[table]


def open_parquet(file: BinaryIO | Path, table: str) -> pq.ParquetWriter:
    """Open a Parquet file for a table of the model, with the encodings that suit its columns."""
    wanted = schema.schema(table)
    large = table.startswith("nvtx") or table in _LARGE
    deltas = (
        [item.name for item in wanted if item.name in _DELTAS and pa.types.is_integer(item.type)]
        if large
        else []
    )
    plain = [*deltas, *_VALUES] if large else []
    return pq.ParquetWriter(
        file,
        wanted,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in wanted.names if name not in plain],
        column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED") or None,
        write_statistics=[name for name in wanted.names if name in _STATISTICS] if large else True,
    )


@cache
def _places(table: str, *, during: bool) -> str | None:
    """Return the column whose first value says where a row group belongs.

    None if all are written in order.

    Ranges that waited for their ends come late; while a recording continues, so do processes that have not ended yet.
    """
    if table in _BY_ID:
        return _BY_ID[table]
    column = next((column for column in TABLES[table].columns if column.name == "process"), None)
    return "process" if during and column is not None and not column.nullable else None


def _sync(files: Iterable[BinaryIO]) -> None:
    """Write files to the disk, all at once: the disk then works for all of them together.

    Empty ones, which are for other tools, are not worth it.
    """
    failures: list[OSError] = []

    def sync(descriptor: int) -> None:
        try:
            os.fsync(descriptor)
        except OSError as error:
            failures.append(error)

    threads = [Thread(target=sync, args=(file.fileno(),)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def prepare() -> None:
    """Make what every part needs, so that its `commit` takes less time."""
    for name in TABLES:
        _empty(name)


@cache
def _empty(table: str) -> bytes:
    """Return the file of a table without rows: most are, in each of the reports that a process makes."""
    file = io.BytesIO()
    open_parquet(file, table).close()
    return file.getvalue()


def write_part(
    report: str | os.PathLike[str],
    facts: Facts,
    tables: Mapping[str, pa.Table | Mapping[str, Any] | Sequence[Mapping[str, Any]]],
) -> manifests.Manifest:
    """Write whole tables as one part.

    Keys must already be those of the part: 0, 1, … in a report's first part.
    """
    with PartWriter(report, facts.id, facts.host) as part:
        for name, rows in tables.items():
            part.write(name, rows)
        return part.commit(facts)


def _claim(report: Path, part_id: str) -> int:
    """Return the number of a part: the one it claimed before it was interrupted, or the next free one."""
    folder = report / manifests.DIRECTORY
    name = f"{part_id}.json"
    for path in folder.glob("part-*"):
        digits = path.name.removeprefix("part-")
        if digits.isdigit() and path.read_text(encoding="utf-8").strip() == name:
            return int(digits)
    number = 0
    while True:
        path = folder / f"part-{number}"
        if not path.exists():
            try:
                with Folder(report) as inside:
                    inside.create_whole(f"{manifests.DIRECTORY}/{path.name}", f"{name}\n".encode())
                return number
            except FileExistsError:
                pass
        number += 1
