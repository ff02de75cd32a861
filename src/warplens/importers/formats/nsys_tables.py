"""NVIDIA Nsight Systems recordings, exported as a folder with one file per table.

## Made by
`nsys export -t parquetdir run.nsys-rep` (`run_pqtdir`) or `nsys export -t arrowdir run.nsys-rep`
(`run_arwdir`). nsys writes them faster than SQLite, and they are smaller.

## What maps to what
Tables and columns have the names of the SQLite export and map in the same way: see
[nsys_sqlite](#nsys_sqlite).

## What is dropped
The same as in the SQLite export. Other files in the folder are ignored.
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
DROPS: tuple[str, ...] = ("graphics, network and storage", "environment variables, output and analysis files")


def recognises(path: Path) -> bool:
    """Say whether this is a folder with nsys' table of strings."""
    return path.is_dir() and "StringIds" in tables_in(path)


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError, which names the file, for a broken one.
    """
    with TablesFolder(source) as database:
        return whole.take(database, part, progress)
