"""NVIDIA Nsight Systems recordings (.nsys-rep), read through an installed nsys.

## Made by
`nsys profile`. Only Nsight Systems can read such files: the `nsys` on the PATH exports it to a
temporary SQLite file. It should not be older than the version that recorded. Without an `nsys`, the
importer prints the command to run on another machine.

## What maps to what
See [nsys_sqlite](#nsys_sqlite).

## What is dropped
The same as in the SQLite export.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from warplens.errors import NotAReport, ReportError
from warplens.importers.content import looks_like
from warplens.importers.nsys import whole
from warplens.importers.nsys.sqlite import MAGIC, SqliteFile

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".nsys-rep", ".qdrep")
CONTENT = "recording of Nsight Systems"
DROPS: tuple[str, ...] = ("graphics, network and storage", "environment variables, output and analysis files")


def recognises(path: Path) -> bool:
    """Say whether the file has that suffix, and is of no other known kind.

    Only nsys reads its content.
    """
    if path.suffix not in SUFFIXES or looks_like(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) != MAGIC


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Export the file with nsys and write the tables to the part.

    Raises NotAReport without nsys, ReportError if it fails.
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        made = source.with_suffix(".sqlite")
        there = " (which exists already)" if made.exists() else ""
        raise NotAReport(
            f"{source} can only be read by Nsight Systems, but there is no nsys on the PATH. Export "
            f"it on a machine with nsys, and import {made.name}{there}: `nsys export -t sqlite "
            f"{source}`."
        )
    progress("nsys export", 0.0)
    with TemporaryDirectory(prefix=".nsys-", dir=part.report.parent) as folder:
        made = Path(folder) / (source.stem + ".sqlite")
        words = [
            nsys,
            "export",
            "--type=sqlite",
            f"--output={made}",
            "--force-overwrite=true",
            str(source.absolute()),
        ]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
            )
        except OSError as error:
            raise ReportError(f"cannot run {nsys}: {error.strerror or error}.") from error
        if done.returncode or not made.is_file():
            output = [
                line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()
            ]
            raise ReportError(
                f"{nsys} could not export {source}: "
                f"{output[-1] if output else f'it ended with {done.returncode}'}"
            )
        with SqliteFile(made) as database:
            return whole.take(database, part, lambda stage, share: progress(stage, 0.3 + 0.7 * share))
