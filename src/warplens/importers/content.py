"""Guesses the format of a file whose name does not fit its content."""

from __future__ import annotations

from pathlib import Path

_BEGINNINGS = {
    b"version https://git-lfs": "a pointer of Git LFS; fetch the file with `git lfs pull`",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x89HDF": "HDF5",
}


def looks_like(path: Path) -> str:
    """Return the kind of file by its first bytes, to print after `it is`; empty if unknown.

    Raises OSError.
    """
    with open(path, "rb") as file:
        head = file.read(64)
    if not head:
        return "empty"
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    text = head.decode("utf-8", errors="ignore")  # a character may be cut off at the end
    is_text = len(text.encode()) > len(head) - 4 and all(c.isprintable() or c.isspace() for c in text)
    return "text" if is_text else ""
