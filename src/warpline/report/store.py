"""Opens a report: finishes what is pending, reads the manifests, and says which files hold each table on whose clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warpline.errors import NotAReport, ReportError
from warpline.model.tables import TABLES
from warpline.report import manifest as manifests
from warpline.report import pending as pendings
from warpline.report.finish import finish
from warpline.report.manifest import Manifest


@dataclass(frozen=True)
class Part:
    """One part and what its clock columns are shifted by (ns) to be on the clock of the report's first part."""

    manifest: Manifest
    shift: int


@dataclass(frozen=True)
class Piece:
    """One file of a table."""

    file: Path
    rows: int
    shift: int


@dataclass(frozen=True)
class Stored:
    """A report as it lies on disk."""

    path: Path
    parts: tuple[Part, ...]
    waiting: tuple[str, ...]

    @property
    def origin(self) -> int:
        """Where the report begins: ns on the clock of the first part."""
        return min(part.manifest.origin + part.shift for part in self.parts)

    @property
    def end(self) -> int:
        """Where the report ends: ns on the clock of the first part."""
        return max(part.manifest.end + part.shift for part in self.parts)

    def pieces(self, table: str) -> list[Piece]:
        """Return the files that hold a table; a part written before the table existed has none."""
        found = []
        for part in self.parts:
            entry = part.manifest.tables.get(table)
            if entry is not None:
                found.append(Piece(self.path / str(entry["file"]), int(entry.get("rows", 0)), part.shift))
        return found


def open_store(path: str | os.PathLike[str], progress: Callable[[str, float], None] | None = None) -> Stored:
    """Open the report at `path`, finishing recordings that nobody runs any more.

    Raises NotAReport, NewerReport or ReportError; messages name the file.
    """
    report = Path(path)
    if not report.is_dir():
        what = "is a file, not a report directory" if report.exists() else "does not exist"
        raise NotAReport(f"{report} {what}")
    waiting = []
    for pending in pendings.listed(report):
        busy = pendings.runner(pending)
        if busy is None:
            finish(pending, report, progress=progress)
        else:
            waiting.append(f"{pending.id}: {busy} is still recording into {pending.spool}")
    files = sorted((report / manifests.DIRECTORY).glob("*.json"))
    if not files:
        if waiting:
            raise ReportError(f"{report} is still being recorded ({waiting[0]}); open it when that has ended")
        raise NotAReport(f"{report} is not a report: it has no {manifests.DIRECTORY}/*.json")
    found = sorted((manifests.read(file) for file in files), key=lambda manifest: (manifest.part, manifest.id))
    _check(report, found)
    first = found[0]
    parts = tuple(
        Part(manifest, 0 if manifest.boot_id == first.boot_id else manifest.realtime_offset - first.realtime_offset) for manifest in found
    )
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
