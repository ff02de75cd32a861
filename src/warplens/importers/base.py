"""The contract of an importer: one file in `formats`, two functions, one part of a report.

An importer is `importers/formats/<name>.py` with

    SUFFIXES: tuple[str, ...]       what such files are called, with the dot
    CONTENT: str                    what kind of file that is, in two words
    DROPS: tuple[str, ...]          what the format holds and a report cannot, in a few words each
    def recognises(path: Path) -> bool                              a look at the content, not at the name; of a folder too
    def read(source: Path, part: PartWriter, progress: Progress, *, opts...) -> Facts
    def parts(source: Path) -> list[Path]                           where each file of a folder is a separate recording: those files

`read` writes the tables of the part and returns its facts; it neither commits nor prints; `progress` hears how far it is. What it
cannot take over becomes a row of `diagnostics`: nothing is left out silently. It never takes over an environment.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from warplens.storage.writer import Facts, PartWriter


Progress = Callable[[str, float], None]  # what is done, and how far it is (0 to 1)


class Recognises(Protocol):
    """Type of `recognises` in each unit."""

    def __call__(self, path: Path) -> bool:
        """Say whether the file, or folder of files, is of this format.

        Raises OSError (IsADirectoryError: it reads files only).
        """
        ...


class Read(Protocol):
    """Type of `read` in each unit."""

    def __call__(self, source: Path, part: PartWriter, progress: Progress, **options: Any) -> Facts:
        """Write the tables of `source` to the part.

        Raises ReportError, which names the file, for one that is broken.
        """
        ...
