"""Imports a file of another tool.

It recognises the format by content, writes the report beside its destination, then moves it there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from warplens import catalog
from warplens.disk.files import remove_tree, rename
from warplens.errors import NotAReport, ReportError, WarplensError
from warplens.handover.naming import is_report
from warplens.importers.base import Progress
from warplens.importers.content import looks_like
from warplens.storage.manifest import Manifest
from warplens.storage.writer import Facts, PartWriter

FAMILY = "importers.formats"
_EXPORTED = (".nsys-rep", ".qdrep")


def format_of(path: Path) -> catalog.Unit:
    """Return the import format of a file or folder.

    Raises NotAReport if no importer reads it, ReportError if nobody can.
    """
    if path.exists() and not path.is_file() and not path.is_dir():  # a pipe would be waited for
        raise NotAReport(
            f"{path} is a pipe or a device, but the importer reads it more than once: save it to a "
            "file first."
        )
    try:
        for unit in catalog.units(FAMILY):
            if _recognises(unit, path):
                return unit
        looks = "" if path.is_dir() else looks_like(path)
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}.") from error
    for unit in catalog.units(FAMILY):
        if path.suffix in unit.constant("SUFFIXES"):
            raise NotAReport(
                f"{path} is no "
                f"{unit.constant('CONTENT')}{f': it is {looks}' if looks else ', despite its name'}."
            )
    known = ", ".join(
        f"{suffix} ({unit.id})" for unit in catalog.units(FAMILY) for suffix in unit.constant("SUFFIXES")
    )
    kind = "folder" if path.is_dir() else "file"
    raise NotAReport(f"{path} is a {kind}, neither a report nor a known format; importable formats: {known}.")


def is_foreign(path: Path) -> bool:
    """Say whether `path` is for an importer.

    Any file, and a folder that is not a report but that one of them knows. Raises OSError.
    """
    if not path.is_dir():
        return path.is_file()
    return not is_report(path) and any(_recognises(unit, path) for unit in catalog.units(FAMILY))


def _recognises(unit: catalog.Unit, path: Path) -> bool:
    try:
        return bool(unit.load().recognises(path))
    except IsADirectoryError:  # it reads files only
        return False


def import_file(
    source: Path, report: Path, progress: Progress = lambda stage, done: None
) -> tuple[Manifest, ...]:
    """Make the report directory `report` of the file or folder `source`.

    It must not exist, or be empty.

    It appears in one step, when it is whole. `progress` hears a stage and how far it is. Raises NotAReport, ReportError.
    """
    unit = format_of(source)
    partial = report.with_name(f".{report.name}.{os.getpid()}.partial")
    try:
        manifests = _parts(unit.load(), source, partial, progress=progress)
        rename(partial, report)
    except OSError as error:
        raise ReportError(f"cannot write {report}: {error.strerror or error}.") from error
    except pa.ArrowException as error:
        raise ReportError(f"{source} cannot be imported: {str(error).splitlines()[0]}.") from error
    finally:
        remove_tree(partial)
    return manifests


def _parts(unit: ModuleType, source: Path, report: Path, progress: Progress) -> tuple[Manifest, ...]:
    """Write a part for the source, or for each file of a folder in which each is a separate recording."""
    files: list[Path] = unit.parts(source) if source.is_dir() and hasattr(unit, "parts") else [source]
    name = part_id(source)
    broken: list[WarplensError] = []
    made: list[Manifest] = []
    with ExitStack() as opened:
        first: tuple[PartWriter, Facts] | None = None
        for number, file in enumerate(files):
            writer = PartWriter(report, name if first is None else f"{name}-{len(made) + 1}", "import")
            try:
                with writer:
                    facts = unit.read(file, writer, _share(progress, number, len(files)))
            except WarplensError as error:
                if len(files) == 1:
                    raise
                broken.append(error)
                continue
            if first is None:
                first = opened.enter_context(writer), facts
            else:
                made.append(writer.commit(facts))
        if first is None:
            raise broken[0]
        first[0].write("diagnostics", [_unread(str(error)) for error in broken])
        if len(files) > 1 or source.is_dir():
            first[0].write(
                "diagnostics", [_unread(text, "warning") for text in _left_out(unit, source, files)]
            )
        return (first[0].commit(first[1]), *made)


def _share(progress: Progress, number: int, count: int) -> Progress:
    return lambda stage, done: progress(stage, (number + done) / count)


def _left_out(unit: ModuleType, source: Path, files: list[Path]) -> Iterator[str]:
    """Yield the problems of files in a folder.

    Recordings in name only, and files that another tool must export first.
    """
    if files == [source]:
        return
    taken = {path.name for path in files}
    stems = {path.stem for path in files}
    for path in sorted(source.iterdir()):
        if path.name in taken or not path.is_file():
            continue
        if path.suffix in _EXPORTED and path.stem not in stems:
            yield f"{path} can only be read by Nsight Systems: export it with `nsys export -t sqlite "
            f"{path}`."
        elif path.name.endswith(unit.SUFFIXES):
            looks = looks_like(path)
            yield f"{path} is no {unit.CONTENT}{f': it is {looks}' if looks else ''}."


def _unread(text: str, severity: str = "error") -> dict[str, Any]:
    return {
        "severity": severity,
        "code": "file-unreadable",
        "source": "import",
        "message": f"not in this report: {text}",
    }


def part_id(source: Path) -> str:
    """Return the name of an imported file's part.

    The same for the same file, or folder of files. Raises OSError.
    """
    files = sorted(source.iterdir()) if source.is_dir() else []
    stamps = [f"{path.name} {(stat := path.stat()).st_size} {stat.st_mtime_ns}" for path in files or [source]]
    parts = [source.name, *stamps] if files else stamps
    digest = hashlib.sha256(" ".join(parts).encode(errors="surrogateescape")).hexdigest()
    return f"import-{digest[:12]}"
