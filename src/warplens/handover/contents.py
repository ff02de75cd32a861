"""Separates our files in a report's folder from the user's: only ours may be overwritten."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from warplens.handover import pending, untrusted
from warplens.handover.naming import FORMAT, MANIFESTS, PENDING

_LONGEST = 1 << 26  # bytes of a manifest
_TEMPORARY = r"(\.tmp[\d-]*)?"
_OURS = re.compile(
    rf"{MANIFESTS}/([^/]+\.json|part-\d+){_TEMPORARY}"
    rf"|{PENDING}/[^/]+?(\.json)?{_TEMPORARY}"
    rf"|tables/\w+/[^/]+\.parquet{_TEMPORARY}"
    r"|index/[^/]+\.lanes(\.\d+\.tmp)?"
    r"|(spool|raw)/[^/]+/[^/]+"
)


def is_whole(report: Path) -> bool:
    """Say whether a folder is a report.

    It has a manifest or a note, not only folders with matching names.
    """
    return bool(pending.listed(report)) or any(map(_is_manifest, (report / MANIFESTS).glob("*.json")))


def of_others(report: Path) -> list[str]:
    """Return what in a report is no file that we made, by its name within it.

    Links are among it, and nothing is behind them.
    """
    return sorted(name for name in _files(report) if not _OURS.fullmatch(name))


def _files(folder: Path, above: str = "") -> Iterator[str]:
    try:
        listing = os.scandir(folder)
    except FileNotFoundError:  # the process that finishes the last recording removes the folder of its note
        return
    with listing as entries:
        for entry in entries:
            name = above + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, f"{name}/")
            else:
                yield f"{name}/" if entry.is_symlink() else name


def _is_manifest(path: Path) -> bool:
    try:
        return bool(json.loads(untrusted.read(path, _LONGEST))["format"] == FORMAT)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False
