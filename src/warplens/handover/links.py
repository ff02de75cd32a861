"""Refuses links in a report, so that a foreign report cannot lead our writes out of its folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warplens.errors import ReportError
from warplens.handover.naming import MANIFESTS, PENDING

_WRITTEN = (PENDING, MANIFESTS, "spool", "tables", "index", "raw")


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Say whether `path` is a directory itself, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_file(path: str | os.PathLike[str]) -> bool:
    """Say whether `path` is a regular file itself, and no link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_private(path: str | os.PathLike[str]) -> bool:
    """Say whether `path` is a directory of ours, no link to one, in which nobody else may do anything."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return is_ours_alone(status)


def is_ours_alone(status: os.stat_result) -> bool:
    """Say the same of what `lstat` or `fstat` told."""
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
    )


def linked(report: Path) -> Path | None:
    """Return the first folder of a report into which we would write, and which is a link.

    None if there is none.
    """
    for folder in (report, report / "tables"):
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_symlink())
        except OSError:
            continue
        for name in names:
            if folder != report or name in _WRITTEN:
                return folder / name
    return None


def check(report: Path) -> None:
    """Raise ReportError if writing into a report would write somewhere else."""
    if (link := linked(report)) is not None:
        raise ReportError(
            f"{link} is a link to {link.readlink()}: warplens does not write or remove files through "
            "a link.\n"
            "If it is yours, replace it by the folder itself."
        )
