"""Maps the control file, so that its counts survive the deletion of the spool directory."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from warplens.disk import files
from warplens.handover.control_layout import (
    ERROR,
    FAILED,
    FILE_SIZE,
    GATE,
    HAS_SPACE,
    LOST,
    MOST_WINDOWS,
    NOT_CHAINED,
    OVER,
    PAGE,
    PAGE_END,
    PROCESSES,
    TRIGGER,
    WINDOW,
    WINDOWS,
    cause,
)

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE; EINVAL before Linux 5.14
_FAILED = ctypes.c_void_p(-1).value
MAX_SIZE_REACHED = 4096  # as an ERROR: no errno, but its byte count came to the limit
# FileHeader in native/include/warplens/format.h
FIRST_CHUNK = 12
CHUNK_END = 64
END_NS = 72
# ChunkHeader there
_CHUNK = struct.Struct("<IBBHQI")
_RECORDS, _STRINGS, _NO_THREAD = 1, 2, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Counts:
    """Agents that started.

    Agents that could not open a spool, the errno of the first of those, and the records they lost.

    `not_chained` libraries are heard by the agent alone, although another NVTX tool is configured too.
    """

    processes: int
    failed: int
    error: int
    lost: int
    not_chained: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which everything is recorded, from `open_ns` to `close_ns` (0: it is open).

    The causes are of `control_layout.CAUSES`.
    """

    open_ns: int
    close_ns: int
    opened_by: str
    closed_by: str
    pid: int


class ControlPage:
    """A view of one control file and, after it had to be written again, of its successors.

    `address` is where the latest is mapped.
    """

    def __init__(self, path: Path) -> None:
        self._pages = [self._map(path)]

    def counts(self) -> Counts:
        """Return the counts of now."""
        processes = failed = error = lost = not_chained = 0
        for page in self._pages:
            content = ctypes.string_at(page, PAGE_END)
            processes += struct.unpack_from("<Q", content, PROCESSES)[0]
            failed += struct.unpack_from("<Q", content, FAILED)[0]
            error = error or struct.unpack_from("<I", content, ERROR)[0]
            lost += struct.unpack_from("<Q", content, LOST)[0]
            not_chained += struct.unpack_from("<I", content, NOT_CHAINED)[0]
        return Counts(processes, failed, error, lost=lost, not_chained=not_chained)

    @property
    def address(self) -> int:
        """The path of the control file for processes that start now."""
        return self._pages[-1]

    @property
    def addresses(self) -> tuple[int, ...]:
        """The addresses of all copies.

        A change goes to all of them, for the processes that began before it was written again.
        """
        return tuple(self._pages)

    def gate(self) -> int:
        """Return how often windows opened and closed: odd while one is open."""
        return int(ctypes.c_uint32.from_address(self.address + GATE).value)

    def arm(self, trigger: int) -> None:
        """Let processes open windows by `trigger` from now on, a Trigger of format.h.

        A full disk may keep that from being written.
        """
        for page in filter(_can_write, self._pages):
            ctypes.c_uint32.from_address(page + TRIGGER).value = trigger

    def disarm(self) -> None:
        """Let no process open a window any more."""
        self.arm(0)

    def refused(self) -> int:
        """Return how often the byte budget kept a file from growing."""
        return sum(int(ctypes.c_uint64.from_address(page + OVER).value) for page in self._pages)

    def windows(self) -> list[Window]:
        """Return all windows so far."""
        return [
            Window(opened, closed, cause(opener), closed_by=cause(closer), pid=pid)
            for opened, closed, opener, closer, pid, _ in self._rows(-1)
        ]

    def gather(self) -> None:
        """Write the windows of all control files into the latest one, when all of them are closed.

        Processes that began before it was written again do not know it, and open theirs in the one they do.
        """
        if len(self._pages) == 1 or not _can_write(self.address, FILE_SIZE):
            return
        rows: list[tuple[int, ...]] = []
        for row in sorted({row for page in range(len(self._pages)) for row in self._rows(page)}):
            if rows and row[0] < rows[-1][1]:  # windows do not overlap
                rows[-1] = (rows[-1][0], max(rows[-1][1], row[1]), *rows[-1][2:])
            else:
                rows.append(row)
        del rows[MOST_WINDOWS:]
        content = b"".join(WINDOW.pack(*row) for row in rows)
        ctypes.memmove(self.address + WINDOWS, content, len(content))
        ctypes.c_uint32.from_address(self.address + GATE).value = 2 * len(rows)

    def _rows(self, page: int) -> list[tuple[int, ...]]:
        address = self._pages[page]
        count = min((int(ctypes.c_uint32.from_address(address + GATE).value) + 1) // 2, MOST_WINDOWS)
        return list(WINDOW.iter_unpack(ctypes.string_at(address + WINDOWS, count * WINDOW.size)))

    def write_again(self, path: Path) -> None:
        """Write a fresh page with the same clock constants to `path`.

        For processes that start from now on; OSError if not.
        """
        content = bytearray(ctypes.string_at(self.address, FILE_SIZE))
        content[PROCESSES:GATE] = bytes(GATE - PROCESSES)
        with files.create(path) as file:
            file.write(content)
        self._pages.append(self._map(path))

    def close(self) -> None:
        """Unmap."""
        for page in self._pages:
            _LIBC.munmap(page, FILE_SIZE)
        self._pages.clear()

    @staticmethod
    def _map(path: Path) -> int:
        # Not Python's mmap: it keeps a descriptor, and would close what a program that closes all there is has opened in its place.
        with files.update(path) as file:
            if os.fstat(file.fileno()).st_size < FILE_SIZE:
                raise OSError(errno.EINVAL, "it is too short", str(path))
            address = _LIBC.mmap(
                None, FILE_SIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file.fileno(), 0
            )
        if address is None or address == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        return int(address)


def _can_write(page: int, size: int = PAGE) -> bool:
    """Whether a control file can be written now, as can_write in native/spool/window.h.

    Looks at its first `size` bytes.
    """
    if ctypes.c_uint32.from_address(page + HAS_SPACE).value:
        return True
    return bool(_LIBC.madvise(page, size, _POPULATE_WRITE) == 0 or ctypes.get_errno() != errno.EFAULT)


def ended_orderly(descriptor: int) -> bool:
    """Whether the process of an open spool file noted when it ended.

    OSError if it cannot be read.
    """
    return any(os.pread(descriptor, 8, END_NS))


def holds_events(spool: Path) -> bool:
    """Say whether a spool file holds events, beyond facts about its process and threads.

    Each later recording repeats the names of earlier ones.
    """
    with spool.open("rb") as file:
        header = file.read(CHUNK_END + 8)
        if len(header) < CHUNK_END + 8:
            return True  # broken: other code reports that
        (at,), (end,) = (
            struct.unpack_from("<I", header, FIRST_CHUNK),
            struct.unpack_from("<Q", header, CHUNK_END),
        )
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
