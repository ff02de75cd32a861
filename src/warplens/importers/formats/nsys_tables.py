"""NVIDIA Nsight Systems recordings, exported as a folder with one file per table.

## Made by
`nsys export -t parquetdir run.nsys-rep` (`run_pqtdir`) or `nsys export -t arrowdir run.nsys-rep` (`run_arwdir`). They are written faster
than SQLite, and take less room.

## What maps to what
Tables and columns are called as in the SQLite export and go where those go: see [nsys_sqlite](#nsys_sqlite).

## What is dropped
The same as of the SQLite export. Files of other kinds in the folder are not looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warplens.importers.nsys import whole
from warplens.importers.nsys.folder import TablesFolder, tables_in

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = ("_pqtdir", "_arwdir")
CONTENT = "folder of Parquet or Arrow files"
DROPS: tuple[str, ...] = ("graphics, network and storage", "environments, output and files of the analysis")


def recognises(path: Path) -> bool:
    """Say whether this is a folder with nsys' table of strings."""
    return path.is_dir() and "StringIds" in tables_in(path)


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError, which names the file, for a broken one.
    """
    with TablesFolder(source) as database:
        return whole.take(database, part, progress)
