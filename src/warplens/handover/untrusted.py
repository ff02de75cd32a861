"""Reads files of unknown origin: bounded, without waiting, only regular files."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path


def read(path: Path, most: int) -> bytes:
    """Return at most the first `most` bytes of a regular file.

    OSError if it is none or cannot be read.
    """
    with opened(path) as file:
        pieces = []
        while most > 0 and (piece := file.read(min(most, 1 << 20))):
            pieces.append(piece)
            most -= len(piece)
        return b"".join(pieces)


@contextmanager
def lines(path: Path, longest: int) -> Iterator[Iterator[bytes]]:
    """Yield the lines of a regular file; of a longer one than `longest` bytes, several pieces.

    OSError as for `read`.
    """
    with io.BufferedReader(opened(path), 1 << 18) as file:
        yield iter(partial(file.readline, longest), b"")


def opened(path: Path) -> io.FileIO:
    """Open a regular file for reading. OSError if it is none or cannot be read."""
    # A pipe of that name would be waited for, and a terminal taken for our own.
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except ValueError as error:  # a NUL in the name
        raise FileNotFoundError(str(error)) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return io.FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
