"""Writes a file that appears complete or not at all. It never replaces a device or a pipe."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warplens.disk.folder import Folder


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield the path of a file to write; after the block its content is that of `out`.

    OSError; `out` is then as it was.

    A regular file is replaced in one step. What else is there, such as /dev/stdout or a pipe, is written into.
    """
    try:
        mode = out.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(out))
    if not stat.S_ISREG(mode):
        with tempfile.TemporaryDirectory(prefix="warplens-") as folder:
            partial = Path(folder) / out.name
            yield partial
            with (
                partial.open("rb") as source,
                open(os.open(out, os.O_WRONLY | os.O_CLOEXEC), "wb", buffering=0) as target,
            ):
                shutil.copyfileobj(source, target)
        return
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    with Folder(out.parent) as folder:
        try:
            yield partial
            folder.rename(partial.name, out.name)
        finally:
            folder.remove(partial.name)
