"""What is used up where nothing more can be written."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from warplens.disk.full import is_full, why_full


def test_a_full_disk_and_a_used_quota_are_distinguished(tmp_path: Path) -> None:
    assert why_full(errno.ENOSPC, tmp_path / "not" / "there") == "the disk is full"
    assert why_full(errno.EDQUOT, tmp_path) == "the disk quota is used up"


@pytest.mark.require("tmpfs")
def test_inodes_are_told_from_bytes(tmpfs: Callable[[str], Path]) -> None:
    assert why_full(errno.ENOSPC, tmpfs("size=64k")) == "the disk is full"
    assert (
        why_full(errno.ENOSPC, tmpfs("size=8m,nr_inodes=4"))
        == "the disk takes no more files (all its inodes are in use)"
    )


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_the_cause_counts(number: int) -> None:
    error = ValueError("odd")
    error.__cause__ = OSError(number, "so")
    assert is_full(error)
    assert not is_full(OSError(errno.EACCES, "so"))
    assert is_full(
        OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device")
    )  # as Arrow says it
