"""Opens a report: finishes what is pending, reads the manifests, and says which files hold each table on whose clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warpline.errors import NotAReport, ReportError, WarplineError
from warpline.handover import pending as pendings
from warpline.handover.naming import located
from warpline.model.tables import TABLES
from warpline.report import manifest as manifests
from warpline.report import schema
from warpline.report.finish import finish
from warpline.report.manifest import Manifest


@dataclass(frozen=True)
class Part:
    """One part and what its clock columns are shifted by (ns) to be on the clock of the report's first part."""

    manifest: Manifest
    shift: int


@dataclass(frozen=True)
class Piece:
    """One file of a table. `missing`: columns that the model got after the file was written; they read as null."""

    file: Path
    rows: int
    shift: int
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stored:
    """A report as it lies on disk; `waiting` has a sentence for each recording that is not in it yet."""

    path: Path
    parts: tuple[Part, ...]
    waiting: tuple[str, ...]
    _checked: dict[Path, tuple[str, ...]] = field(default_factory=dict, compare=False)  # file -> missing columns

    @property
    def origin(self) -> int:
        """Where the report begins: ns on the clock of the first part."""
        return min(part.manifest.origin + part.shift for part in self.parts)

    @property
    def end(self) -> int:
        """Where the report ends: ns on the clock of the first part."""
        return max(part.manifest.end + part.shift for part in self.parts)

    def rows(self, table: str) -> int:
        """Return how many rows a table has."""
        return sum(part.manifest.rows(table) for part in self.parts)

    def pieces(self, table: str) -> list[Piece]:
        """Return the files that hold a table; a part written before the table existed has none.

        Raises ReportError for a file that does not hold what the model and its manifest say.
        """
        found = []
        for part in self.parts:
            entry = part.manifest.tables.get(table)
            if entry is not None:
                file, rows = self.path / str(entry["file"]), part.manifest.rows(table)
                if file not in self._checked:
                    self._checked[file] = _check_file(table, file, rows)
                found.append(Piece(file, rows, part.shift, self._checked[file]))
        return found


def open_store(path: str | os.PathLike[str], progress: Callable[[str, float], None] | None = None) -> Stored:
    """Open the report at `path`, finishing recordings that nobody runs any more.

    A name may lack its `.warpline`. A recording that cannot be finished now (a full disk, say) leaves the other parts readable.
    Raises NotAReport, NewerReport or ReportError; messages name the file.
    """
    report = located(Path(path))
    if not report.is_dir():
        what = "is a file, not a report directory" if report.exists() else "does not exist"
        raise NotAReport(f"{report} {what}")
    waiting = []
    failed: WarplineError | None = None
    for pending in pendings.listed(report):
        busy = pendings.runner(pending)
        if busy is None:
            try:
                finish(pending, report, progress=progress)
            except WarplineError as error:
                failed = failed or error
                waiting.append(f"{pending.id}: {error}")
        else:
            waiting.append(f"{pending.id}: {busy} is still recording into {pending.spool}")
    files = sorted((report / manifests.DIRECTORY).glob("*.json"))
    if not files:
        if failed is not None:
            raise failed
        if waiting:
            raise ReportError(f"{report} is still being recorded ({waiting[0]}); open it when that has ended")
        raise NotAReport(f"{report} is not a report: it has no {manifests.DIRECTORY}/*.json")
    found = sorted((manifests.read(file) for file in files), key=lambda manifest: (manifest.part, manifest.id))
    _check(report, found)
    first = found[0]
    parts = tuple(
        Part(manifest, 0 if manifest.boot_id == first.boot_id else manifest.realtime_offset - first.realtime_offset) for manifest in found
    )
    for part in parts:
        if abs(part.shift) >= 1 << 62:
            raise ReportError(f"{report}: the clock of the part {part.manifest.id} is too far from that of {first.id}")
    return Stored(report, parts, tuple(waiting))


def _check(report: Path, found: list[Manifest]) -> None:
    numbers: dict[int, str] = {}
    for manifest in found:
        if manifest.part in numbers:
            raise ReportError(f"{report}: the parts {numbers[manifest.part]} and {manifest.id} have the same number {manifest.part}")
        numbers[manifest.part] = manifest.id
        for name in TABLES:
            entry = manifest.tables.get(name)
            if entry is None:
                continue
            file = report / str(entry["file"])
            if not file.resolve().is_relative_to(report.resolve()):
                raise ReportError(f"{report}: the part {manifest.id} points outside the report: {entry['file']}")
            if not file.is_file():
                raise ReportError(f"{file} is missing; the part {manifest.id} of the report needs it")


def _check_file(table: str, path: Path, expected: int) -> tuple[str, ...]:
    """Return the columns that a Parquet file may lack and does; ReportError unless it has the others and `expected` rows."""
    try:
        with pq.ParquetFile(path) as file:
            found, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ReportError(f"cannot read {path}: {error}") from error
    if rows != expected:
        raise ReportError(f"{path} has {rows} rows, but its manifest says {expected}: it is not the file that was written")
    missing = []
    for wanted in schema.schema(table):
        number = found.get_field_index(wanted.name)
        if number < 0:
            if wanted.nullable:
                missing.append(wanted.name)
                continue
            raise ReportError(f"{path} lacks the column {wanted.name!r} of the table {table}")
        kind, nullable = _plain(found.field(number).type), found.field(number).nullable
        if kind != _plain(wanted.type):
            raise ReportError(f"{path}: the column {wanted.name!r} holds {kind}, not {_plain(wanted.type)}")
        if nullable and not wanted.nullable:
            raise ReportError(f"{path}: the column {wanted.name!r} may have gaps, but each row needs a value")
    return tuple(missing)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
