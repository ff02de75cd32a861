"""Finishes a recording: its spool becomes a part of a report, once, whatever interrupts it.

Before that, snapshots.
"""

from __future__ import annotations

import errno
import math
import os
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa

from warplens.convert.begun import Begun, remove_begun
from warplens.convert.build import Builder
from warplens.convert.following import Surprise
from warplens.convert.timings import Progress, Timings
from warplens.disk.files import remove_folder
from warplens.disk.folder import Folder
from warplens.disk.full import is_full, why_full
from warplens.errors import ReportError
from warplens.handover import links, spool_files
from warplens.handover import pending as pendings
from warplens.handover.naming import PACKED, TOKEN
from warplens.spool import packed
from warplens.spool.packed import Whole
from warplens.storage import generations
from warplens.storage import manifest as manifests
from warplens.storage.available import available
from warplens.storage.manifest import Manifest
from warplens.storage.writer import PartWriter

_INDEX_SHARE = 0.01  # of a run, for its index: the end of a run may take 2 %


def finish(
    source: pendings.Pending | str | os.PathLike[str],
    report: str | os.PathLike[str],
    *,
    keep_raw: bool = False,
    progress: Progress | None = None,
    timings: Timings | None = None,
    begun: Begun | None = None,
) -> Manifest:
    """Make the recording `source` (what `begin` returned, or a spool directory) a part of `report`.

    Right however often it is called, by how many commands at once, and wherever it was interrupted before: the manifest,
    written last, is what makes the part exist; the spool goes only after it. `progress` hears a stage and how far it is. `begun` has
    what was written while the recording went on: it is completed, or given up.
    Raises ReportError; the spool is then untouched and the next command that opens the report tries again.
    """
    directory = Path(report)
    links.check(directory)
    note = source if isinstance(source, pendings.Pending) else _adopt(Path(source), directory)
    with pendings.locked(note) as mine:
        committed = manifests.path_of(directory, note.id)
        there = manifests.read(committed) if committed.exists() else None
        if there is not None and (there.snapshot is None or not mine):
            if mine:
                _clean(note, directory, [])
            return there
        if not mine:
            raise ReportError(
                f"{note.path} and {committed} are missing: another process removed the recording"
            )
        spool = _spool(note, directory, named=not isinstance(source, pendings.Pending))
        timings = timings or Timings()
        try:
            if keep_raw and not note.keep_raw:
                with packed.whole(spool):
                    pass  # what is kept is the whole spool
            manifest, unreadable = _complete(
                begun, note, spool, progress=progress, timings=timings
            ) or _build(
                PartWriter(directory, note.id, note.host), note, spool, progress=progress, timings=timings
            )
            if manifest.is_large:
                from warplens.timeline.index import building as indexing  # a short run need not load it

                with timings.stage("index"):
                    # The user waits for a report that was written during the run.
                    limit = (manifest.end - manifest.origin) * _INDEX_SHARE if begun is not None else math.inf
                    indexing.prepare(directory, manifest, progress, limit_ns=limit)
        except (OSError, pa.ArrowException) as error:
            raise _failed(error, directory, spool) from error
        remove_begun(directory, manifest)
        generations.sweep(directory, _manifests(directory))
        kept = None if keep_raw or note.keep_raw else unreadable
        _clean(note, directory, kept)
        return manifest


def _complete(
    begun: Begun | None, note: pendings.Pending, spool: Path, progress: Progress | None, timings: Timings
) -> tuple[Manifest, list[Path]] | None:
    """Complete what was written while the recording went on.

    None where it is not as it would be if all were read now.
    """
    if begun is None:
        return None
    try:
        return _build(begun.part, note, spool, progress=progress, timings=timings, begun=begun)
    except Surprise:
        return None


def _build(
    part: PartWriter,
    note: pendings.Pending,
    spool: Path,
    progress: Progress | None,
    timings: Timings,
    begun: Begun | None = None,
) -> tuple[Manifest, list[Path]]:
    """Write all tables and the manifest; return it, and the spool files that cannot be read."""
    reading: AbstractContextManager[Whole] = (
        nullcontext(Whole()) if begun is not None else packed.whole(spool, memory=available() // 2)
    )
    with part, reading as put_back:
        builder = Builder(
            part,
            spool,
            note.job,
            progress=progress,
            timings=timings,
            followers=begun.followers if begun is not None else {},
            in_memory=frozenset(put_back.in_memory),
            processes=begun.ended.processes if begun is not None else None,
        )
        builder.add_notes(put_back.notes)
        facts = builder.build()
        with timings.stage("write"):
            return part.commit(facts), builder.unreadable


def snapshot(
    note: pendings.Pending, report: str | os.PathLike[str] | None = None, *, progress: Progress | None = None
) -> Manifest:
    """Make a part of `report` (default: the note's) of what is recorded by now, while the recording goes on.

    The spool stays as it is. The next snapshot replaces this one in one step, and so does `finish`; a reader that has the report open keeps
    what was there. Where the recording was finished meanwhile, that is returned. Raises ReportError; nothing has changed then.
    """
    directory = Path(note.report if report is None else report)
    links.check(directory)
    with pendings.locked(note) as mine:
        committed = manifests.path_of(directory, note.id)
        there = manifests.read(committed) if committed.exists() else None
        if there is not None and (there.snapshot is None or not mine):
            return there
        if not mine:
            raise ReportError(f"the recording {note.id} of {directory} is over: its report is being written")
        spool = _spool(note, directory)
        generations.sweep(directory, _manifests(directory))
        try:
            reading = packed.whole(spool, live=True, memory=available() // 2)
            with PartWriter(directory, note.id, note.host, snapshot=True) as part, reading as put_back:
                builder = Builder(
                    part,
                    spool,
                    note.job,
                    progress=progress,
                    as_of=time.monotonic_ns(),
                    in_memory=frozenset(put_back.in_memory),
                )
                builder.add_notes(put_back.notes)
                facts = builder.build()
                manifest = part.commit(facts, snapshot=time.time_ns())
        except (OSError, pa.ArrowException) as error:
            raise _failed(error, directory, spool, live=True) from error
        generations.sweep(directory, _manifests(directory))
        return manifest


def _spool(note: pendings.Pending, report: Path, *, named: bool = False) -> Path:
    """Return the folder of a recording's spool. ReportError if it is missing, or another's.

    `named`: the caller named this spool, so it need not hold the report's token.
    """
    spool = Path(note.spool)
    if not spool.is_dir():
        raise ReportError(
            f"the spool {spool} of {report} is missing; remove {note.path} to give up this recording"
        )
    if not named and not pendings.belongs(note):
        raise ReportError(
            f"{note.path} names the spool {spool}, which is not marked as part of this report, so "
            "warplens does not touch it.\n"
            f"If it does, move it to {report / 'spool' / note.id}."
        )
    return spool


def _manifests(report: Path) -> list[Manifest]:
    return [manifests.read(path) for path in (report / manifests.DIRECTORY).glob("*.json")]


def _adopt(spool: Path, report: Path) -> pendings.Pending:
    name = pendings.safe(spool.resolve().name)
    known = [note for note in pendings.listed(report) if Path(note.spool).resolve() == spool.resolve()]
    if known:
        return known[0]
    committed = manifests.path_of(report, name)
    if not spool.is_dir() and not committed.exists():
        raise ReportError(f"the spool directory {spool} is missing")
    return pendings.adopt(report, spool, name)


def _clean(note: pendings.Pending, report: Path, kept: list[Path] | None) -> None:
    """Move the files in `kept` (None: all) to `raw/`, remove the rest of the spool, and last the note itself.

    If that is refused the note stays, and the next command that opens the report tries again: the part itself is there.
    """
    spool = Path(note.spool)
    if spool.is_dir() and pendings.belongs(note):
        try:
            ours = [
                path
                for path in spool_files.files(spool)
                if path.name != TOKEN and not path.name.endswith(PACKED)
            ]
            with Folder(report) as inside, Folder(spool, follow=False) as source:
                for path in ours if kept is None else [path for path in kept if path in ours]:
                    source.move(path.name, inside, f"raw/{note.id}/{path.name}")
            spool_files.remove(spool)
        except OSError:
            return
    elif links.is_folder(spool) and spool.name.removeprefix("warplens-") == note.id:
        remove_folder(spool)  # a finisher was killed after it removed the last file
    with Folder(note.report) as inside:
        inside.remove_folder("spool")
        inside.remove(f"{pendings.DIRECTORY}/{note.path.name}")
        inside.remove_folder(pendings.DIRECTORY)


def _failed(error: BaseException, report: Path, spool: Path, *, live: bool = False) -> ReportError:
    """Say what is wrong and what to do.

    `live`: the recording goes on, only what it is by now could not be written.
    """
    again = f"the spool {spool} is untouched: any command that opens {report} finishes it"
    if live:
        again = "the recording continues, and nothing is lost"
    then = "then try" if live else "then open it"
    number = getattr(error, "errno", None)
    if is_full(error):
        why = why_full(errno.EDQUOT if "quota exceeded" in str(error) else number, report)
        return ReportError(f"no space left while writing {report}: {why}; free some, {then} again ({again})")
    if number in (errno.EACCES, errno.EROFS, errno.EPERM):
        return ReportError(f"cannot write {report}: {error}; make it writable, {then} again ({again})")
    return ReportError(f"cannot {'write' if live else 'finish'} {report}: {error}; {again}")
