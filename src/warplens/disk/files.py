"""Creates and replaces single files by their path, through the folder that holds them.

For callers without an open `Folder`.
"""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from warplens.disk.folder import Folder

_SHARED = 0o666  # less the umask


def create(path: Path) -> BinaryIO:
    """Make a private file that is not there yet. OSError."""
    with Folder(path.parent) as folder:
        return folder.create(path.name)


def output(path: Path) -> BinaryIO:
    """Create the file that a user asked for, with the user's usual permissions.

    The path is the one that `replacing` yields. OSError.
    """
    with Folder(path.parent) as folder:
        return folder.create(path.name, mode=_SHARED, again=True, buffer=1 << 20)


def text_output(path: Path, *, errors: str = "strict") -> TextIO:
    """Make the same for text. OSError."""
    return io.TextIOWrapper(output(path), "utf-8", errors, "\n")


def write(path: Path, data: bytes | str) -> None:
    """Put a file in the place of what has that name, in one step. OSError."""
    with Folder(path.parent) as folder:
        folder.write(path.name, data)


def update(path: Path) -> BinaryIO:
    """Open a file that is there for writing into it. OSError."""
    with Folder(path.parent) as folder:
        return folder.update(path.name)


def append(path: Path) -> BinaryIO:
    """Open a file for writing at its end, unbuffered; it is made if there is none. OSError."""
    with Folder(path.parent) as folder:
        return folder.update(path.name, create=True, append=True)


def remove(path: Path) -> None:
    """Remove a file; one that is not there is fine. OSError."""
    with suppress(FileNotFoundError), Folder(path.parent) as folder:
        folder.remove(path.name)


def remove_folder(path: Path) -> bool:
    """Remove a folder that is empty; say whether it is gone."""
    try:
        with Folder(path.parent) as folder:
            return folder.remove_folder(path.name)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def remove_tree(path: Path) -> None:
    """Remove a folder of ours with all that is in it, as far as that goes."""
    with suppress(OSError), Folder(path.parent) as folder:
        folder.remove_tree(path.name)


def rename(old: Path, new: Path) -> None:
    """Give an entry another name. OSError."""
    with Folder(old.parent) as source, Folder(new.parent) as target:
        source.rename(old.name, new.name, target)
