"""A growing spool goes to the disk while it grows."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

import pytest

from warplens.recording.agent.control_file import CHUNK_END
from warplens.recording.spool.writeback import Writeback

_CACHESTAT = 451
SIZE = 32 << 20


def _waiting(path: Path) -> int:
    """Pages of a file that nobody has begun to write to the disk. Skips where the kernel does not say."""
    wanted, found = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syscall(_CACHESTAT, descriptor, wanted, found, 0) != 0:
            pytest.skip("this kernel has no cachestat")
    finally:
        os.close(descriptor)
    return found[1]


def _spool(folder: Path) -> Path:
    path = folder / "a.spool"
    with path.open("wb") as file:
        file.write(bytes(CHUNK_END) + struct.pack("<Q", SIZE))
        file.write(bytes(SIZE - file.tell()))
    return path


def test_written_pages_do_not_stay_dirty(tmp_path: Path) -> None:
    path = _spool(tmp_path)
    if _waiting(path) < SIZE >> 13:
        pytest.skip("this file system keeps nothing waiting")
    Writeback(tmp_path).look()
    assert _waiting(path) <= 1


def test_a_spool_that_is_gone_or_odd_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "short.spool").write_bytes(bytes(5 << 20))
    os.truncate(tmp_path / "short.spool", 10)
    (tmp_path / "link.spool").symlink_to("/dev/zero")
    Writeback(tmp_path).look()
    Writeback(tmp_path / "none").look()
    stopped = Writeback(tmp_path)
    stopped.stop()
