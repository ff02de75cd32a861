"""The manifest of one part of a report: the recorded data, its origin and its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from warplens._version import __version__
from warplens.disk.folder import Folder
from warplens.errors import NewerReport, ReportError
from warplens.handover import seals, untrusted
from warplens.handover.naming import FORMAT, MANIFESTS

VERSION = 1
DIRECTORY = MANIFESTS
_LONGEST = 1 << 26  # bytes
PARTS = 1 << 15  # that many, at most: the range ids of more would not fit into 64 bits
PROCESSES_PER_PART = 1 << 16
INDEXED = 1 << 21  # rows: the first viewer indexes fewer within half a second


@dataclass(frozen=True)
class Manifest:
    """Facts of one part.

    Times are ns of its host's CLOCK_MONOTONIC; `tables` maps a name to `{"file", "rows"}`.

    `usage` is what the launcher was given by `wait4` for the program and all that it waited for: `user_ns`, `system_ns`, `minor_faults`,
    `major_faults`, `waits`, `preemptions`; `max_rss` is the most memory of any one of them, bytes, where it is more than the launcher had.
    Empty where nobody knows.

    `snapshot`: when it was written, ns since 1970, where the recording went on; None: it is finished. `own`: this user wrote it.
    """

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
    usage: dict[str, int] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    snapshot: int | None = None
    warplens: str = __version__
    own: bool = field(default=True, compare=False)

    def rows(self, table: str) -> int:
        """Return how many rows this part has of a table; 0 when it lacks it."""
        return int(self.tables.get(table, {}).get("rows", 0))

    @property
    def is_large(self) -> bool:
        """Whether the part may have slices enough for an index."""
        return is_large(sum(map(self.rows, self.tables)))


def is_large(slices: int) -> bool:
    """Return whether a number of slices needs an index, and a process apart for what the page computes."""
    return slices >= INDEXED


def path_of(report: Path, part_id: str) -> Path:
    """Return where the manifest of a part lies."""
    return report / DIRECTORY / f"{part_id}.json"


def claimed(report: Path) -> int:
    """Return how many part numbers are claimed.

    A part with very many processes has several, and so has an interrupted one.
    """
    return sum(1 for _ in (report / DIRECTORY).glob("part-*"))


def write(report: Path, manifest: Manifest) -> None:
    """Write the manifest in one step: from then on the part exists."""
    facts = {item.name: getattr(manifest, item.name) for item in fields(manifest) if item.name != "own"}
    data = seals.sealed({"format": FORMAT, "version": VERSION, **facts})
    with Folder(report) as folder:
        folder.write(f"{DIRECTORY}/{manifest.id}.json", json.dumps(data, indent=1) + "\n", sync=True)


def read(path: Path) -> Manifest:
    """Read a manifest.

    Raises NewerReport for a later version, ReportError when it is broken; both name the file.
    """
    try:
        data = json.loads(untrusted.read(path, _LONGEST))
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(
            f"{path} is broken ({error}); the part of the report it describes cannot be read"
        ) from error
    return parse(data, path)


def parse(data: Any, path: Path) -> Manifest:
    """Check the JSON of a manifest read from `path`."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ReportError(f'{path} is not a manifest of a report ("format" is not "{FORMAT}")')
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ReportError(f'{path} has no "version"')
    if version > VERSION:
        raise NewerReport(
            f"{path} has version {version} of the report format, written by warplens {data.get('warplens', '?')}; "
            f"this is warplens {__version__}, which reads up to {VERSION}: update it"
        )
    values = {
        name: data[name]
        for name in (item.name for item in fields(Manifest))
        if name in data and name != "own"
    }
    for name, fits in _CHECKS.items():
        if name in values and not fits(values[name]):
            raise ReportError(f'{path}: "{name}" has the wrong type or an impossible value')
    try:
        manifest = Manifest(**values, own=seals.is_own(data))
    except TypeError as error:
        raise ReportError(f"{path} is incomplete: {error}") from error
    for name, table in manifest.tables.items():
        file, rows = (table.get("file"), table.get("rows")) if isinstance(table, Mapping) else (None, None)
        if not isinstance(file, str) or "\0" in file or not _whole(rows, 0, 1 << 62):
            raise ReportError(f'{path}: the table "{name}" has no file or no number of rows')
    return manifest


def _whole(value: object, least: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < end


def _text(value: object) -> bool:
    return isinstance(value, str)


def _time(value: object) -> bool:
    return _whole(value, -(1 << 62), (1 << 62) + 1)  # so that sums of two fit into 64 bits


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "part": lambda value: _whole(value, 0, PARTS),
    "id": _text,
    "host": _text,
    "boot_id": _text,
    "job": lambda value: value is None or _text(value),
    "command": lambda value: isinstance(value, list) and all(map(_text, value)),
    "origin": _time,
    "end": _time,
    "realtime_offset": _time,
    "exit_status": lambda value: value is None or _whole(value, -(1 << 31), 1 << 31),
    "clock": _text,
    "sources": lambda value: (
        isinstance(value, dict) and all(isinstance(source, dict) for source in value.values())
    ),
    "usage": lambda value: (
        isinstance(value, dict) and all(_whole(number, 0, 1 << 62) for number in value.values())
    ),
    "tables": lambda value: isinstance(value, dict),
    "snapshot": lambda value: value is None or _whole(value, 0, 1 << 62),
    "warplens": _text,
}
