"""Prepares a recording that cannot be finished on this machine for another one."""

from __future__ import annotations

import os
from pathlib import Path

from warplens.cli.printing.words import short_path
from warplens.disk.files import remove_tree
from warplens.disk.folder import Folder
from warplens.handover import pending


def leave_for_later(note: pending.Pending, error: ModuleNotFoundError) -> str:
    """Leave a recording in the report for a machine that can finish it; print that.

    The spool moves into the report, so that one directory can be carried away.
    """
    path = short_path(note.report)
    said = (
        f"warplens: recorded into {path}, but {error.name} is not installed here, so the report is "
        "not finished.\n"
    )
    inside = note.report / "spool" / note.id
    if Path(note.spool) != inside:
        try:
            _move(Path(note.spool), inside)
        except OSError as failure:
            return (
                f"{said}  The recording could not be moved from {note.spool}: "
                f"{failure.strerror or failure}. "
                f"Copy {path} to a machine that has warplens with its dependencies, and that "
                f"directory to spool/{note.id} in it."
            )
    return (
        f"{said}  Copy {path} to a machine that has warplens with its dependencies, and finish it "
        f"there: warplens info --trust {path}"
    )


def _move(spool: Path, inside: Path) -> None:
    """Move a spool, also to another file system.

    The command that finishes the report takes `inside` for the whole spool. OSError.
    """
    with Folder(inside.parent, create=True) as spools, Folder(spool.parent) as above:
        try:
            above.rename(spool.name, inside.name, spools)
            return
        except OSError:
            pass
        copy = f"{inside.name}.tmp{os.getpid()}"
        try:
            with above.folder(spool.name) as source, spools.folder(copy, create=True) as target:
                for name in source.names():
                    source.copy(name, target, name)
            spools.rename(copy, inside.name)
        except OSError:
            remove_tree(inside.with_name(copy))
            raise
    remove_tree(spool)
