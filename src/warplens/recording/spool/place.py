"""Chooses and creates the place of a recording: its report, its spool, the note that it is unfinished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warplens.disk import files
from warplens.errors import WarplensError
from warplens.handover import pending
from warplens.handover.destination import destination, remove_empty
from warplens.handover.wording import Wording
from warplens.recording.run_facts import RunFacts
from warplens.recording.spool.directory import SpoolDirectory, choose_spool


@dataclass(frozen=True, slots=True)
class Place:
    """`created` is true if the report was made for this recording."""

    report: Path
    created: bool
    spool: SpoolDirectory
    note: pending.Pending

    def warn(self, facts: RunFacts) -> None:
        """Note for the report what is wrong with the place of the spool."""
        if warning := self.spool.warning:
            facts.note("warning", "spool-place", f"{warning[0].upper()}{warning[1:]} ({self.spool.path}).")

    def give_up(self) -> None:
        """Remove all traces of a recording that never began."""
        files.remove_tree(self.spool.path)
        files.remove(self.note.path)
        for folder in ("spool", pending.DIRECTORY):
            files.remove_folder(self.report / folder)
        if self.created:
            remove_empty(self.report)


def take_place(
    output: str | None,
    *,
    force: bool,
    job: str | None,
    spool_dir: Path | None,
    keep_raw: bool,
    part: str,
    wording: Wording,
) -> Place:
    """Choose and create the directories of the recording `part`.

    ReportError, CaptureError or UsageError if that is refused.
    """
    # before anything is overwritten: a slip in an option must not cost a report
    named = None if spool_dir is None else choose_spool(Path(), part, explicit=spool_dir, wording=wording)
    try:
        with destination(output, force=force, job=job, wording=wording) as (report, created):
            spool = named or choose_spool(report, part, wording=wording)
            try:
                note = pending.begin(
                    report, spool.path, job=job, keep_raw=keep_raw, name=part, wording=wording
                )
            except WarplensError:
                files.remove_tree(spool.path)
                raise
    except BaseException:
        if named is not None:
            files.remove_tree(named.path)
        raise
    return Place(report, created, spool, note=note)
