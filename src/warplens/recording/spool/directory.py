"""Chooses the spool directory: on this node, because the agent maps its files into memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from warplens.disk.files import remove_folder
from warplens.disk.folder import PRIVATE_FOLDER, Folder
from warplens.disk.full import FULL, why_full
from warplens.errors import CaptureError
from warplens.handover.wording import COMMAND_LINE, Wording
from warplens.recording.spool.filesystems import filesystem_of, is_refused, is_slow

ENOUGH = 8 << 20
_TRIES = 10


@dataclass(frozen=True, slots=True)
class SpoolDirectory:
    """The chosen directory, its filesystem, and a warning if it is second best.

    It exists, is empty and private.
    """

    path: Path
    filesystem: str
    beside: bool
    warning: str | None = None


def choose_spool(
    report: Path,
    name: str,
    *,
    explicit: Path | None = None,
    environment: Mapping[str, str] | None = None,
    wording: Wording = COMMAND_LINE,
) -> SpoolDirectory:
    """Create and return the spool directory of the recording `name`.

    CaptureError if nothing can be written.

    `explicit` is taken as it is, but for one on NFS. Else it lies in `report` unless the filesystem there is known to be slow, else under
    `$TMPDIR`, else in the usual temporary directories.
    """
    if explicit is not None:
        path = explicit.absolute() / f"warplens-{name}"
        filesystem = filesystem_of(path)
        if is_refused(filesystem):
            raise CaptureError(
                f"{wording.spool_dir} {explicit} is on {filesystem}: if its server did not answer, "
                "the program would wait for it.\n"
                "Name a directory on a disk of this node, e.g. /tmp; the report itself may be on a "
                "network file system."
            )
        try:
            _create(path)
        except OSError as error:
            raise CaptureError(
                f"Cannot write to {wording.spool_dir} {explicit}: {_words(error, path)}.\n"
                "Name a writable directory on a disk of this node, e.g. /tmp."
            ) from error
        return SpoolDirectory(path, filesystem, beside=False, warning=_warning(path, filesystem))

    failures = []
    full: OSError | None = None
    fallback: SpoolDirectory | None = None
    for parent, beside in _candidates(report, environment):
        path = parent / name if beside else parent / f"warplens-{name}"
        filesystem = filesystem_of(path)
        if is_slow(filesystem):
            failures.append(f"  {parent}: {filesystem} is not a disk of this node")
            if beside or fallback is not None:
                continue
        try:
            _create(path)
        except OSError as error:
            failures.append(f"  {parent}: {_words(error, path)}")
            full = error if error.errno in FULL else full
            continue
        chosen = SpoolDirectory(path, filesystem, beside, warning=_warning(path, filesystem))
        if chosen.warning is None:
            if fallback is not None:
                remove_folder(fallback.path)
            return chosen
        failures.append(f"  {parent}: {chosen.warning}")
        if fallback is None:
            fallback = chosen
        else:
            remove_folder(path)
    if fallback is not None:
        return fallback
    raise CaptureError(
        "No directory for the spool, the files that the program records into:\n"
        + "\n".join(failures)
        + f"\nName one with {wording.spool_dir}."
    ) from full


def _candidates(report: Path, environment: Mapping[str, str] | None) -> Iterator[tuple[Path, bool]]:
    yield report.absolute() / "spool", True
    import tempfile  # slow to load, and hardly ever needed

    environ = os.environ if environment is None else environment
    texts = (environ.get("TMPDIR"), tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")
    yield from ((path, False) for path in dict.fromkeys(Path(text).absolute() for text in texts if text))


def _create(path: Path) -> None:
    for attempt in range(_TRIES):
        path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        try:
            path.mkdir(PRIVATE_FOLDER)
            break
        except FileNotFoundError:  # another rank of the job was the last to leave it in the meantime
            if attempt == _TRIES - 1:
                raise
    try:
        with Folder(path) as folder:
            try:
                with folder.create("probe") as file:
                    file.write(bytes(4096))
            finally:
                folder.remove("probe")
    except OSError:
        remove_folder(path)
        raise


def _warning(path: Path, filesystem: str) -> str | None:
    if is_slow(filesystem):
        return f"the spool is on {filesystem}, which may slow the program down or lose records"
    stat = os.statvfs(path)
    free = stat.f_bavail * stat.f_frsize
    if free < ENOUGH:
        return f"only {free / (1 << 20):.1f} MiB are free for the spool"
    return None


def _words(error: OSError, path: Path) -> str:
    if error.errno in FULL:
        return why_full(error.errno, path)
    words = {
        errno.EACCES: "no permission to write there",
        errno.EPERM: "no permission to write there",
        errno.EROFS: "it is read-only",
        errno.ENOTDIR: "it is not a directory",
        errno.EEXIST: "a file of that name is in the way",
    }
    return words.get(error.errno or 0) or error.strerror or str(error)
