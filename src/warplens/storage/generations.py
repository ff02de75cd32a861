"""The files of snapshots.

Each snapshot of a part has its own files, which go when no reader has them open.

A reader holds a shared lock on one file of the generation that it reads; to remove a generation, a process needs the lock exclusively.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Iterable
from pathlib import Path

from warplens.disk.folder import Folder
from warplens.model.tables import TABLES
from warplens.storage.manifest import Manifest

if sys.platform != "win32":
    import fcntl

FIRST = "processes"  # the table whose file stands for the generation: it is there first and goes last
INDEX, INDEX_SUFFIX = "index", ".lanes"
_NAME = re.compile(r"(?P<part>[^/]+-\d+)\.s(?P<number>\d+)\.parquet(?P<tmp>\.tmp)?")


def file_name(table: str, host: str, part: int, generation: int) -> str:
    """Return where a table of a part lies in the report; generation 0 is the finished part."""
    return f"tables/{table}/{host}-{part}{f'.s{generation}' if generation else ''}.parquet"


class Held:
    """Keeps the files of a snapshot where they are until it is dropped.

    OSError if they are gone already.
    """

    def __init__(self, report: Path, manifest: Manifest) -> None:
        file = str(manifest.tables.get(FIRST, {}).get("file"))
        if not re.fullmatch(rf"tables/{FIRST}/{_NAME.pattern}", file):
            return  # not written by us: nobody will remove it
        path = report / file
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
        self._closing = weakref.finalize(self, os.close, descriptor)
        try:
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), path.stat()):
                raise FileNotFoundError(str(path))
        except BaseException:
            self._closing()
            raise


def next_number(report: Path, host: str, part: int) -> int:
    """Return the number of the next snapshot of a part. The caller may write it alone."""
    return max((number for name, number, _ in _found(report) if name == f"{host}-{part}"), default=0) + 1


def sweep(report: Path, manifests: Iterable[Manifest]) -> None:
    """Remove the files of snapshots that no manifest names and nobody reads; none through a link.

    Nobody may be writing one.
    """
    files = _found(report)
    if not files:
        return
    named = {str(table["file"]) for manifest in manifests for table in manifest.tables.values()}
    with Folder(report) as folder:
        for part, number, path in files:
            file = path.relative_to(report).as_posix()
            if file in named:
                continue
            try:
                _remove(folder, part, number, file=file)
            except OSError:
                continue  # of another user, say: the next one tries again


def _found(report: Path) -> list[tuple[str, int, Path]]:
    files = []
    folder = report / "tables" / FIRST
    for path in folder.glob("*.s*.parquet*") if folder.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        if match:
            files.append((match["part"], int(match["number"]), path))
    return files


def _remove(report: Folder, part: str, number: int, file: str) -> None:
    with report.update(file) as held:  # network filesystems lock nothing that is open for reading
        if sys.platform != "win32":
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        report.remove(f"{INDEX}/{part}.s{number}{INDEX_SUFFIX}")
        for table in (*(name for name in TABLES if name != FIRST), FIRST):
            for suffix in (".tmp", ""):
                report.remove(f"tables/{table}/{part}.s{number}.parquet{suffix}")
