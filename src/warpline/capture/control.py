"""The control page, kept mapped so that its counts survive the deletion of the spool directory."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

# ControlPage in native/include/warpline/format.h
PROCESSES = 48
FAILED = 56
ERROR = 64
LOST = 72
SIZE = 80
# FileHeader there
FIRST_CHUNK = 12
CHUNK_END = 64


@dataclass(frozen=True, slots=True)
class Counts:
    """Agents that started; agents that could not open a spool, the errno of the first of those, and the records they lost."""

    processes: int
    failed: int
    error: int
    lost: int


class ControlPage:
    """A read-only view of one control page and, after the page had to be written anew, of its successors."""

    def __init__(self, path: Path) -> None:
        self._pages = [self._map(path)]

    def counts(self) -> Counts:
        """Return the counts of now."""
        processes = failed = error = lost = 0
        for page in self._pages:
            processes += struct.unpack_from("<Q", page, PROCESSES)[0]
            failed += struct.unpack_from("<Q", page, FAILED)[0]
            error = error or struct.unpack_from("<I", page, ERROR)[0]
            lost += struct.unpack_from("<Q", page, LOST)[0]
        return Counts(processes, failed, error, lost)

    def write_again(self, path: Path) -> None:
        """Write a fresh page with the same clock constants to `path`, for processes that start from now on; OSError if not."""
        content = bytearray(self._pages[0])
        content[PROCESSES:SIZE] = bytes(SIZE - PROCESSES)
        with path.open("xb") as file:
            file.write(content)
        self._pages.append(self._map(path))

    def close(self) -> None:
        """Unmap."""
        for page in self._pages:
            page.close()

    @staticmethod
    def _map(path: Path) -> mmap.mmap:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
