"""Writes lines to a file that the user named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from warplens.disk.files import text_output
from warplens.disk.replacing import replacing
from warplens.errors import UsageError


def write_lines(file: Path, lines: Iterable[str], *, overwrite: bool) -> None:
    """Write `lines` to `file`.

    Raises UsageError if it exists (unless `overwrite`) or cannot be written.
    """
    try:
        if file.is_file() and not overwrite:
            raise UsageError(f"{file} exists; --force-overwrite replaces it.")
        with replacing(file) as partial, text_output(partial) as stream:
            stream.writelines(line + "\n" for line in lines)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}.") from error
