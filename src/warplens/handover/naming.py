"""Names of reports on disk: the suffix, the folders, and the directory that a name means."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warplens.errors import ReportError

SUFFIX = ".warplens"
FORMAT = "warplens-report"  # what a manifest says that it is of
MANIFESTS = "manifest.d"
PENDING = "pending.d"
TABLES = "tables"
SUMMARIES = "summaries"  # of the report, for questions over many ranks
PACKED = ".spool.packed"  # how the names of packed copies of spool files end
_NO_PERMISSION = (
    "You may not read the report {}: no permission for {}.\nAsk its owner for a copy, or for `chmod -R a+rX`."
)
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


def check_readable(path: Path) -> None:
    """Raise ReportError if this user may not read a report directory, or its parent."""
    reports = (path, path.with_name(path.name + SUFFIX)) if path.name else (path,)
    for folder in [folder for report in reports for folder in (report, report / MANIFESTS, report / TABLES)]:
        try:
            mode = folder.stat().st_mode
        except PermissionError as error:
            raise ReportError(_NO_PERMISSION.format(path, folder)) from error
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(mode) and not os.access(folder, os.R_OK | os.X_OK):
            raise ReportError(_NO_PERMISSION.format(path, folder))


def located(path: Path) -> Path:
    """Return the report that a name means: `path`, or where that is none, the directory `path.warplens`."""
    longer = path.with_name(path.name + SUFFIX) if path.name else path
    return longer if not is_report(path) and longer.is_dir() else path
