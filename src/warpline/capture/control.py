"""The control page, kept mapped so that its counts survive the deletion of the spool directory."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

# ControlPage in native/include/warpline/format.h
PROCESSES = 48
FAILED = 56
ERROR = 64
LOST = 72
NOT_CHAINED = 84
SIZE = 88
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value
# FileHeader there
FIRST_CHUNK = 12
CHUNK_END = 64
END_NS = 72
# ChunkHeader there
_CHUNK = struct.Struct("<IBBHQI")
_RECORDS, _STRINGS, _NO_THREAD = 1, 2, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Counts:
    """Agents that started; agents that could not open a spool, the errno of the first of those, and the records they lost.

    `not_chained` libraries are heard by the agent alone, although another NVTX tool is configured too.
    """

    processes: int
    failed: int
    error: int
    lost: int
    not_chained: int = 0


class ControlPage:
    """A read-only view of one control page and, after the page had to be written anew, of its successors."""

    def __init__(self, path: Path) -> None:
        self._pages = [self._map(path)]

    def counts(self) -> Counts:
        """Return the counts of now."""
        processes = failed = error = lost = not_chained = 0
        for page in self._pages:
            content = ctypes.string_at(page, SIZE)
            processes += struct.unpack_from("<Q", content, PROCESSES)[0]
            failed += struct.unpack_from("<Q", content, FAILED)[0]
            error = error or struct.unpack_from("<I", content, ERROR)[0]
            lost += struct.unpack_from("<Q", content, LOST)[0]
            not_chained += struct.unpack_from("<I", content, NOT_CHAINED)[0]
        return Counts(processes, failed, error, lost, not_chained)

    def write_again(self, path: Path) -> None:
        """Write a fresh page with the same clock constants to `path`, for processes that start from now on; OSError if not."""
        content = bytearray(ctypes.string_at(self._pages[0], mmap.PAGESIZE))
        content[PROCESSES:SIZE] = bytes(SIZE - PROCESSES)
        with path.open("xb") as file:
            file.write(content)
        self._pages.append(self._map(path))

    def close(self) -> None:
        """Unmap."""
        for page in self._pages:
            _LIBC.munmap(page, mmap.PAGESIZE)
        self._pages.clear()

    @staticmethod
    def _map(path: Path) -> int:
        # Not Python's mmap: it keeps a descriptor, and would close what a program that closes all there is has opened in its place.
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < SIZE:
                raise OSError(errno.EINVAL, "it is too short", str(path))
            address = _LIBC.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        if address is None or address == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        return int(address)


def ended_orderly(descriptor: int) -> bool:
    """Whether the process of an open spool file noted when it ended. OSError where it cannot be read."""
    return any(os.pread(descriptor, 8, END_NS))


def holds_events(spool: Path) -> bool:
    """Whether a spool file holds more than what a process knew and who took part: names of an earlier recording stand in each later one."""
    with spool.open("rb") as file:
        header = file.read(CHUNK_END + 8)
        if len(header) < CHUNK_END + 8:
            return True  # broken: that is told elsewhere
        (at,), (end,) = struct.unpack_from("<I", header, FIRST_CHUNK), struct.unpack_from("<Q", header, CHUNK_END)
        while at < end:
            file.seek(at)
            chunk = file.read(_CHUNK.size)
            if len(chunk) < _CHUNK.size:
                return True
            _, kind, _, _, size, thread = _CHUNK.unpack(chunk)
            if size == 0 or not (kind == _STRINGS or (kind == _RECORDS and thread == _NO_THREAD)):
                return True
            at += size
    return False
