"""Makes a report of a file of another tool: found by its content, written beside and put in its place when it is whole."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyarrow as pa

from warpline import catalog
from warpline.errors import NotAReport, ReportError
from warpline.handover.naming import is_report
from warpline.importers.base import Progress
from warpline.importers.content import looks_like
from warpline.report.manifest import Manifest
from warpline.report.writer import PartWriter

FAMILY = "importers.formats"


def format_of(path: Path) -> catalog.Unit:
    """Return the import format of a file or folder. Raises NotAReport where no importer reads it, ReportError where nobody can."""
    try:
        for unit in catalog.units(FAMILY):
            if _recognises(unit, path):
                return unit
        looks = "" if path.is_dir() else looks_like(path)
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}.") from error
    for unit in catalog.units(FAMILY):
        if path.suffix in unit.constant("SUFFIXES"):
            raise NotAReport(f"{path} is no {unit.constant('CONTENT')}{f': it is {looks}' if looks else ', whatever its name says'}.")
    known = ", ".join(f"{suffix} ({unit.id})" for unit in catalog.units(FAMILY) for suffix in unit.constant("SUFFIXES"))
    kind = "folder" if path.is_dir() else "file"
    raise NotAReport(f"{path} is a {kind}, not a report, and of no format that can be imported; there are: {known}.")


def is_foreign(path: Path) -> bool:
    """Say whether `path` is for an importer: any file, and a folder that is no report but that one of them knows. Raises OSError."""
    if not path.is_dir():
        return path.is_file()
    return not is_report(path) and any(_recognises(unit, path) for unit in catalog.units(FAMILY))


def _recognises(unit: catalog.Unit, path: Path) -> bool:
    try:
        return bool(unit.load().recognises(path))
    except IsADirectoryError:  # it reads files only
        return False


def import_file(source: Path, report: Path, progress: Progress = lambda stage, done: None) -> Manifest:
    """Make the report directory `report` of the file or folder `source`; it must not exist, or be empty.

    It appears in one step, when it is whole. `progress` hears a stage and how far it is. Raises NotAReport, ReportError.
    """
    unit = format_of(source)
    partial = report.with_name(f".{report.name}.{os.getpid()}.partial")
    try:
        with PartWriter(partial, part_id(source), "import") as part:
            facts = unit.load().read(source, part, progress)
            manifest = part.commit(facts)
        partial.rename(report)
    except OSError as error:
        raise ReportError(f"cannot write {report}: {error.strerror or error}.") from error
    except pa.ArrowException as error:
        raise ReportError(f"{source} cannot be imported: {str(error).splitlines()[0]}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def part_id(source: Path) -> str:
    """Return what the part of an imported file is called: the same for the same file, or folder of files. Raises OSError."""
    files = sorted(source.iterdir()) if source.is_dir() else []
    told = [f"{path.name} {(stat := path.stat()).st_size} {stat.st_mtime_ns}" for path in files or [source]]
    return f"import-{hashlib.sha256(' '.join([source.name, *told] if files else told).encode(errors='surrogateescape')).hexdigest()[:12]}"
