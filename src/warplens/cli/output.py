"""Writes lines to a file that the user named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from warplens.errors import UsageError


def write_lines(file: Path, lines: Iterable[str], *, overwrite: bool) -> None:
    """Write `lines` to `file`. Raises UsageError where it exists (unless `overwrite`) or cannot be written."""
    try:
        with open(file, "w" if overwrite else "x", encoding="utf-8", newline="\n") as stream:
            stream.writelines(line + "\n" for line in lines)
    except FileExistsError:
        raise UsageError(f"{file} exists; --force-overwrite replaces it.") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}.") from error
