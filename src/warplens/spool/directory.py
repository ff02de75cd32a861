"""Reads a spool directory: the launcher's notes and the list of spool files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplens.handover import untrusted
from warplens.spool import layout
from warplens.spool.notes import Note
from warplens.spool.process import number, text, words
from warplens.spool.windows import CaptureWindows, read_capture, read_file

_LONGEST = 1 << 26  # bytes of launch.json


@dataclass(frozen=True)
class LaunchNotes:
    """The launcher's notes.

    Every field has a default, because the launcher may have been killed before it wrote it.
    """

    present: bool = False
    command: tuple[str, ...] = ()
    host: str = ""
    boot_id: str = ""
    job: str | None = None
    pid: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    primary_end_ns: int | None = None
    exit_status: int | None = None
    last_alive: dict[str, int] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    target: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Control:
    """The control page: which counter, how many agents started and failed.

    What was captured, where this version can read that.
    """

    clock: layout.Clock
    started: int
    failed: int
    error: int
    capture: CaptureWindows | None = None


def spool_files(directory: Path) -> list[Path]:
    """Return the spool files of a directory, by name."""
    names = sorted(
        entry.name for entry in os.scandir(directory) if entry.name.endswith(".spool") and entry.is_file()
    )
    return [directory / name for name in names]


def is_begun(path: Path) -> bool:
    """Say whether a spool has a header: it is written last, and a process may end before."""
    try:
        with path.open("rb") as file:
            return any(file.read(layout.PAGE))
    except OSError:
        return True


def read_control(directory: Path) -> Control | None:
    """Read the control page; None if there is none or it is damaged."""
    data = read_file(directory / "control")
    page = layout.read_control(data[: layout.PAGE])
    return Control(*page, read_capture(data)) if page else None


def read_launch(directory: Path) -> LaunchNotes:
    """Read `launch.json`, taking what fits."""
    try:
        data = json.loads(
            untrusted.read(directory / "launch.json", _LONGEST).decode("utf-8", errors="replace")
        )
    except (OSError, ValueError, RecursionError):
        return LaunchNotes()
    if not isinstance(data, Mapping):
        return LaunchNotes()
    status = data.get("exit_status")
    job = data.get("job")
    notes = data.get("diagnostics")
    target = data.get("target")
    sources = data.get("sources")
    alive = data.get("last_alive")
    usage = data.get("usage")
    return LaunchNotes(
        present=True,
        command=words(data.get("command")),
        host=text(data.get("host")),
        boot_id=text(data.get("boot_id")),
        job=None if job is None else str(job),
        pid=number(data.get("pid")),
        start_ns=number(data.get("start_ns")),
        end_ns=number(data.get("end_ns")),
        primary_end_ns=number(data.get("primary_end_ns")),
        exit_status=status if isinstance(status, int) and -(1 << 31) <= status < 1 << 31 else None,
        last_alive={name: number(time) or 0 for name, time in alive.items()}
        if isinstance(alive, Mapping)
        else {},
        sources={name: facts for name, facts in sources.items() if isinstance(facts, dict)}
        if isinstance(sources, Mapping)
        else {},
        usage={str(name): value for name, value in usage.items() if number(value) is not None}
        if isinstance(usage, Mapping)
        else {},
        notes=tuple(_note(item) for item in notes if isinstance(item, Mapping))
        if isinstance(notes, list)
        else (),
        target=dict(target) if isinstance(target, Mapping) else {},
    )


def _note(item: Mapping[str, Any]) -> Note:
    severity = text(item.get("severity"))
    return Note(
        severity if severity in ("info", "warning", "error") else "info",
        text(item.get("code")) or "note",
        text(item.get("source")) or "launcher",
        message=text(item.get("message")),
        count=number(item.get("count")),
        time=number(item.get("time")),
    )
