"""Chooses the report of a recording: a new one, that of the same job, or one that may be overwritten."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warplens.disk.files import remove_folder
from warplens.disk.folder import PRIVATE_FOLDER, Folder
from warplens.errors import ReportError
from warplens.handover import contents, pending, spool_files
from warplens.handover.naming import is_report
from warplens.handover.output_name import claim
from warplens.handover.wording import COMMAND_LINE, Wording

_SHOWN = 3  # files


@contextmanager
def destination(
    output: str | None, *, force: bool, job: str | None, wording: Wording = COMMAND_LINE
) -> Iterator[tuple[Path, bool]]:
    """Yield the report's path, and whether it was created for us.

    ReportError if it must not be written to.

    Inside the block no other launcher on this filesystem chooses: note the recording there with `pending.begin`.
    """
    path, created = claim(output, host=socket.gethostname().replace("/", "_"), wording=wording)
    with _locked(path.parent):
        if created and path.is_dir() and any(path.iterdir()):
            created = False  # another one, who had waited for the lock, found it empty and was faster
        if not created:
            _check(path, force=force, job=job, wording=wording)
        path.mkdir(PRIVATE_FOLDER, exist_ok=True)
        try:
            yield path, created
        except BaseException:
            if created:
                remove_empty(path)
            raise


def remove_empty(report: Path) -> None:
    """Remove a report that never got anything in it."""
    for folder in (report / pending.DIRECTORY, report / "spool", report):
        remove_folder(folder)


def _check(path: Path, *, force: bool, job: str | None, wording: Wording) -> None:
    other = f"Name another with {wording.output}"
    if not path.is_dir():
        raise ReportError(f"{path} is not a report and would be overwritten. {other}.")
    if not any(path.iterdir()):
        return
    if not is_report(path):
        raise ReportError(f"{path} is a directory but not a report, and would be overwritten. {other}.")
    jobs = pending.jobs(path)
    if job is not None and jobs == {job}:
        return
    if running := pending.running(path):
        raise ReportError(
            f"{path} is still being written by {pending.runner(running[0]) or 'another launcher'}.\n{other}."
        )
    if force:
        _overwrite(path, other)
        return
    why = ""
    if job is not None:
        others = ", ".join(sorted(name or "no job" for name in jobs))
        why = f"\nIt is not of this job ({job}) but of {others}."
    raise ReportError(
        f"The report {path} exists already.{why}\n{other}, or overwrite it with {wording.force}."
    )


def _overwrite(path: Path, other: str) -> None:
    if path.is_symlink():
        raise ReportError(
            f"{path} is a link to {path.readlink()}, which stays.\nRemove the link, or name its target."
        )
    strange = contents.of_others(path)
    if strange:
        more = f" and {len(strange) - _SHOWN} more" if len(strange) > _SHOWN else ""
        raise ReportError(
            f"{path} contains files that are not part of a report, so warplens does not overwrite it: "
            f"{', '.join(strange[:_SHOWN])}{more}.\n"
            f"Move these files away first, or name another report."
        )
    if not contents.is_whole(path) and any(files for _, _, files in os.walk(path)):
        raise ReportError(f"{path} is a directory but not a report, and would be overwritten. {other}.")
    for note in pending.listed(path):
        with pending.locked(note) as ours:  # the process that finishes it now may end that
            try:
                if ours and pending.belongs(note):
                    spool_files.remove(note.spool)
            except OSError:
                continue
    # out of the way in one step, so that nobody meets half a report
    old = path.with_name(f".{path.name}.old-{os.getpid()}")
    try:
        with Folder(path.parent) as folder:
            folder.rename(path.name, old.name)
            folder.remove_tree(old.name)
    except OSError as error:
        raise ReportError(f"Cannot overwrite the report {path}: {error.strerror}.\n{other}.") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # some network filesystems lock no directories; then only the names protect
        yield
    finally:
        os.close(descriptor)
