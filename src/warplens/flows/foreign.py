"""Opens files of other tools as if they were reports.

Imported once, kept in the user's cache until they change.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from warplens._version import __version__
from warplens.disk.files import remove_folder, remove_tree
from warplens.errors import ReportError
from warplens.flows.answers import Report
from warplens.handover import links
from warplens.handover.naming import SUFFIX, located
from warplens.handover.output_name import with_suffix
from warplens.importers.importing import import_file, is_foreign, part_id
from warplens.storage import manifest as manifests

_NAME = re.compile("[0-9a-f]{16}")
_KEPT = 16  # reports
_IN_USE_S = 86_400.0


def open(path: str | os.PathLike[str], *, progress: Callable[[str, float], None] | None = None) -> Report:
    """Open a report directory, or a file or folder of another tool, which is imported first.

    See `warplens.query.open`.

    What can be imported: `warplens import --help-formats`.
    """
    given = located(Path(path))
    return Report.open(imported(given, progress=progress) if is_foreign(given) else given, progress=progress)


def imported(
    path: Path,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Path:
    """Return the report of the foreign file or folder `path`.

    The one beside it that `warplens import` made, else one in the cache.

    `tell` hears where an import goes, `progress` how far it is. Raises NotAReport, ReportError.
    """
    try:
        part, whole = part_id(path), path.resolve()
        told = path.stat()
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}.") from error
    beside = with_suffix(str(path))
    if manifests.path_of(beside, part).exists():
        return beside
    key = hashlib.sha256(
        f"{whole} {told.st_size} {told.st_mtime_ns} {told.st_ino} {part} {__version__}".encode(
            errors="surrogateescape"
        )
    )
    folder = cache() / key.hexdigest()[:16]
    report = folder / (path.stem.encode(errors="replace").decode() + SUFFIX)
    if not manifests.path_of(report, part).exists():
        _make(path, folder, report, part=part, progress=progress or (lambda stage, done: None))
        if tell is not None:
            tell(f"warplens: imported {path} into {report}; `warplens import` makes a report that stays.")
    try:
        os.utime(folder)
    except OSError:
        pass
    return report


def cache() -> Path:
    """Return the folder of imported reports.

    `warplens/imports` in the user's cache, else one in the folder for temporary files.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - no error if there is no home
    user = os.getuid() if hasattr(os, "getuid") else 0
    shared = Path(tempfile.gettempdir()) / f"warplens-imports-{user}"
    for folder in (Path(home) / "warplens" / "imports", shared):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        # In a folder that everybody may write to, another could have been there first, with a link to a folder of ours.
        if os.access(folder, os.W_OK | os.X_OK) and (
            links.is_private(folder) if folder == shared else folder.stat().st_uid == user
        ):
            return folder
    raise ReportError(
        f"cannot store imported files: {home} is not writable, and {shared} is not a writable folder "
        "that only you own.\n"
        "Set XDG_CACHE_HOME to a folder of yours."
    )


def _make(
    source: Path, folder: Path, report: Path, part: str, progress: Callable[[str, float], None]
) -> None:
    _sweep(folder.parent)
    try:
        folder.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise ReportError(f"cannot write {folder}: {error.strerror or error}.") from error
    try:
        import_file(source, report, progress)
    except ReportError:
        if manifests.path_of(report, part).exists():  # another user imported it at the same time
            return
        remove_folder(folder)
        raise


def _is_import(folder: Path) -> bool:
    """Say whether a folder of the cache is ours.

    It has such a name, and holds nothing but a report, or nothing.
    """
    return (
        _NAME.fullmatch(folder.name) is not None
        and links.is_folder(folder)
        and all(entry.name.endswith(SUFFIX) and links.is_folder(entry) for entry in folder.iterdir())
    )


def _sweep(folder: Path) -> None:
    """Remove the imports that were not used for longest, so that there are not ever more.

    What we did not make stays.
    """
    try:
        used = sorted(
            ((entry.stat().st_mtime, entry) for entry in folder.iterdir() if _is_import(entry)), reverse=True
        )
    except OSError:
        return
    for when, entry in used[_KEPT - 1 :]:
        if time.time() - when > _IN_USE_S:
            remove_tree(entry)
