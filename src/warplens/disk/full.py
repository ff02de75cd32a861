"""Explains why a write failed: the disk is full, it takes no more files, or the quota is used up."""

from __future__ import annotations

import errno
import os
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
_FEW = 256  # files: a report takes half as many
_SOME = 1 << 20  # bytes


def is_full(error: BaseException | None) -> bool:
    """Say whether something failed because a disk has no room, or its user none on it."""
    while error is not None:
        if isinstance(error, OSError) and (
            error.errno in FULL or "No space left" in str(error) or "quota exceeded" in str(error)
        ):
            return True
        error = error.__cause__
    return False


def why_full(number: int | None, path: Path) -> str:
    """Return the exhausted resource at `path`, for an error number of `FULL`.

    `the disk is full`, and the like.
    """
    if number == errno.EDQUOT:
        return "the disk quota is used up"
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        status = os.statvfs(path)
    except OSError:
        return "the disk is full"
    # Who failed may have removed what it had begun.
    if status.f_files and status.f_favail < _FEW and status.f_bavail * status.f_frsize > _SOME:
        return "the disk takes no more files (all its inodes are in use)"
    return "the disk is full"
