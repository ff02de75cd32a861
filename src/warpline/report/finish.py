"""Finishes a recording: its spool becomes a part of a report, once, whatever interrupts it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pyarrow as pa

from warpline.errors import ReportError
from warpline.handover import pending as pendings
from warpline.report import manifest as manifests
from warpline.report.build import Builder, Progress, Timings
from warpline.report.manifest import Manifest
from warpline.report.writer import PartWriter


def finish(
    source: pendings.Pending | str | os.PathLike[str],
    report: str | os.PathLike[str],
    *,
    keep_raw: bool = False,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Manifest:
    """Make the recording `source` (what `begin` returned, or a spool directory) a part of `report`.

    Right however often it is called, by how many commands at once, and wherever it was interrupted before: the manifest,
    written last, is what makes the part exist; the spool goes only after it. `progress` hears a stage and how far it is.
    Raises ReportError; the spool is then untouched and the next command that opens the report tries again.
    """
    directory = Path(report)
    note = source if isinstance(source, pendings.Pending) else _adopt(Path(source), directory)
    with pendings.locked(note) as mine:
        committed = manifests.path_of(directory, note.id)
        if not mine or committed.exists():
            if not committed.exists():
                raise ReportError(f"{note.path} is gone, {committed} is not there: somebody removed the recording")
            manifest = manifests.read(committed)
            if mine:
                _clean(note, directory, [])
            return manifest
        spool = Path(note.spool)
        if not spool.is_dir():
            raise ReportError(f"the spool {spool} of {directory} is not there; remove {note.path} to give this recording up")
        try:
            with PartWriter(directory, note.id, note.host) as part:
                builder = Builder(part, spool, note.job, progress, timings or Timings())
                facts = builder.build()
                with builder.timings.stage("write"):
                    manifest = part.commit(facts)
        except (OSError, pa.ArrowException) as error:
            raise _failed(error, directory, spool) from error
        kept = None if keep_raw or note.keep_raw else builder.unreadable
        _clean(note, directory, kept)
        return manifest


def _adopt(spool: Path, report: Path) -> pendings.Pending:
    name = pendings.safe(spool.resolve().name)
    known = [note for note in pendings.listed(report) if Path(note.spool).resolve() == spool.resolve()]
    if known:
        return known[0]
    committed = manifests.path_of(report, name)
    if not spool.is_dir() and not committed.exists():
        raise ReportError(f"there is no spool directory {spool}")
    return pendings.adopt(report, spool, name)


def _clean(note: pendings.Pending, report: Path, kept: list[Path] | None) -> None:
    """Move the files in `kept` (None: all) to `raw/`, remove the rest of the spool, and last the note itself.

    Where that is refused the note stays, and whoever opens the report next tries again: the part itself is there.
    """
    spool = Path(note.spool)
    if spool.is_dir():
        raw = report / "raw" / note.id
        try:
            for path in pendings.files(spool) if kept is None else kept:
                raw.mkdir(parents=True, exist_ok=True)
                shutil.move(path, raw / path.name)  # one by one: whenever it is interrupted, each file is whole in one place
            pendings.remove(spool)
        except OSError:
            return
        if spool.parent.name == "spool" and spool.parent.parent.resolve() == report.resolve():
            _remove_empty(spool.parent)
    note.path.unlink(missing_ok=True)
    _remove_empty(note.path.parent)


def _remove_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:
        pass


def _failed(error: BaseException, report: Path, spool: Path) -> ReportError:
    again = f"the spool {spool} is untouched: any command that opens {report} finishes it"
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
        return ReportError(f"no space left while writing {report}; free some, then open it again ({again})")
    if number in (errno.EACCES, errno.EROFS, errno.EPERM):
        return ReportError(f"cannot write {report}: {error}; make it writable, then open it again ({again})")
    return ReportError(f"cannot finish {report}: {error}; {again}")
