"""The manifest of one part of a report: what was recorded, where, and which files hold it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from warpline._version import __version__
from warpline.errors import NewerReport, ReportError

FORMAT = "warpline-report"
VERSION = 1
DIRECTORY = "manifest.d"


@dataclass(frozen=True)
class Manifest:
    """Facts of one part. Times are ns of its host's CLOCK_MONOTONIC; `tables` maps a name to `{"file", "rows"}`."""

    part: int
    id: str
    host: str
    boot_id: str
    job: str | None = None
    command: list[str] = field(default_factory=list)
    origin: int = 0
    end: int = 0
    realtime_offset: int = 0
    exit_status: int | None = None
    clock: str = "monotonic"
    sources: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    warpline: str = __version__

    def rows(self, table: str) -> int:
        """Return how many rows this part has of a table; 0 when it lacks it."""
        return int(self.tables.get(table, {}).get("rows", 0))


def path_of(report: Path, part_id: str) -> Path:
    """Return where the manifest of a part lies."""
    return report / DIRECTORY / f"{part_id}.json"


def write(report: Path, manifest: Manifest) -> None:
    """Write the manifest in one step: from then on the part exists."""
    path = path_of(report, manifest.id)
    data = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read(path: Path) -> Manifest:
    """Read a manifest. Raises NewerReport for a later version, ReportError when it is broken; both name the file."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ReportError(f"{path} is broken ({error}); the part of the report it describes cannot be read") from error
    return parse(data, path)


def parse(data: Any, path: Path) -> Manifest:
    """Check the JSON of a manifest read from `path`."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ReportError(f'{path} is no manifest of a report ("format" is not "{FORMAT}")')
    version = data.get("version")
    if not isinstance(version, int):
        raise ReportError(f'{path} has no "version"')
    if version > VERSION:
        raise NewerReport(
            f"{path} has version {version} of the report format, written by warpline {data.get('warpline', '?')}; "
            f"this is warpline {__version__}, which reads up to {VERSION}: update it"
        )
    values = {name: data[name] for name in (item.name for item in fields(Manifest)) if name in data}
    for name, kinds in _KINDS.items():
        if name in values and not isinstance(values[name], kinds):
            raise ReportError(f'{path}: "{name}" has the wrong type')
    try:
        manifest = Manifest(**values)
    except TypeError as error:
        raise ReportError(f"{path} is incomplete: {error}") from error
    for name, table in manifest.tables.items():
        if not isinstance(table, Mapping) or not isinstance(table.get("file"), str):
            raise ReportError(f'{path}: the table "{name}" has no file')
    return manifest


_KINDS: dict[str, tuple[type, ...]] = {
    "part": (int,),
    "id": (str,),
    "host": (str,),
    "boot_id": (str,),
    "command": (list,),
    "origin": (int,),
    "end": (int,),
    "realtime_offset": (int,),
    "exit_status": (int, type(None)),
    "sources": (dict,),
    "tables": (dict,),
}
