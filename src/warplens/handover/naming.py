"""What a report is called on disk: its suffix, its folders, and which directory a name means."""

from __future__ import annotations

import os
from pathlib import Path

SUFFIX = ".warplens"
FORMAT = "warplens-report"  # what a manifest says that it is of
MANIFESTS = "manifest.d"
PENDING = "pending.d"
PACKED = ".spool.packed"  # how the names of packed copies of spool files end
TOKEN = "token"  # in a spool, and in the note that names it: they belong together


def is_readable(path: Path) -> bool:
    """Say whether the path is UTF-8, as it has to be for what reads the tables."""
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_report(path: Path) -> bool:
    """Say whether `path` is a report directory, finished or not."""
    return (path / MANIFESTS).is_dir() or (path / PENDING).is_dir()


def located(path: Path) -> Path:
    """Return the report that a name means: `path`, or where that is none, the directory `path.warplens`."""
    longer = path.with_name(path.name + SUFFIX) if path.name else path
    return longer if not is_report(path) and longer.is_dir() else path
