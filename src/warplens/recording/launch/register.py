"""The launcher's end of the register of processes.

It makes the file, reserves room in it, and adds what only it knows.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

NAME = "processes.log"
_RECORD = struct.Struct("<4sIIiiiQiiII16x")  # WarplensProcessRecord in native/include/warplens/registry.h
_WAITED, _FOREIGN, _RUNNING = 5, 6, 7
_MOST_TEXT = 60_000
ROOM = 1 << 20
_KEEP_SIZE = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)


class Register:
    """`processes.log` in the spool directory; `failed` is the error where it could not be made.

    Nothing here raises OSError.
    """

    def __init__(self, spool: Path) -> None:
        self.failed: OSError | None = None
        self._path = spool / NAME
        self._held: list[int] = []  # the latest last; earlier ones were deleted with the directory
        self._room = 0
        self._open()

    def look(self) -> None:
        """Reserve more room if it gets scarce.

        Makes the file again if it was deleted with its directory.
        """
        if not self._held:
            return
        try:
            if os.fstat(self._held[-1]).st_nlink == 0:
                self._open()
            elif os.fstat(self._held[-1]).st_size > self._room - ROOM // 2:
                self._reserve()
        except OSError:
            pass

    def waited(self, pid: int, status: int) -> None:
        """Note that our child `pid` ended: `status` is its exit code, or 128 + signal."""
        self._append(_WAITED, pid, os.getpid(), status=status)

    def foreign(self, pid: int, reason: int, program: str, command: Sequence[str]) -> None:
        """Note that our child `pid` runs without us, for a reason of `WarplensForeign`."""
        texts = b"".join(os.fsencode(text) + b"\0" for text in (program, *command))[:_MOST_TEXT]
        self._append(_FOREIGN, pid, os.getpid(), status=reason, texts=texts)

    def running(self, pids: Iterable[tuple[int, int]]) -> None:
        """Note the processes (id, parent's id) that still run when the recording ends."""
        for pid, parent in pids:
            self._append(_RUNNING, pid, parent, status=0)

    def close(self) -> None:
        """Let go of it; what deleted files held goes into the one that is there."""
        self.look()
        for descriptor in self._held[:-1]:
            try:
                os.lseek(descriptor, 0, os.SEEK_SET)
                with self._writing() as latest:
                    while block := os.read(descriptor, 1 << 20):
                        os.write(latest, block)
            except OSError:
                pass
        for descriptor in self._held:
            os.close(descriptor)
        self._held = []

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Open it for a moment only: while a file is open for writing its file system cannot be remounted."""
        descriptor = os.open(f"/proc/self/fd/{self._held[-1]}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _append(self, kind: int, pid: int, ppid: int, status: int, texts: bytes = b"") -> None:
        rest = texts + bytes(-len(texts) % 8)
        size, count = _RECORD.size + len(rest), texts.count(b"\0")
        record = (
            _RECORD.pack(b"WPRC", size, kind, pid, ppid, status, time.monotonic_ns(), -1, -1, count, 0) + rest
        )
        if self._held:
            try:
                with self._writing() as descriptor:
                    os.write(descriptor, record)
            except OSError:
                pass

    def _open(self) -> None:
        try:
            self._held.append(
                os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            )
        except OSError as error:
            self.failed = error
            return
        self._room = 0
        try:
            self._reserve()
        except OSError:
            pass

    def _reserve(self) -> None:
        """So that a full disk still has room for processes."""
        size = os.fstat(self._held[-1]).st_size
        with self._writing() as descriptor:
            reserved = _LIBC.fallocate(descriptor, _KEEP_SIZE, size, ROOM) == 0
        if reserved:
            self._room = size + ROOM
        else:
            self._room = 1 << 62  # this filesystem cannot: do not ask again


def descendants(pids: Iterable[int]) -> list[tuple[int, int]]:
    """Return `pids`, which are our children, and all processes below them, each with its parent's id."""
    found = [(pid, os.getpid()) for pid in pids]
    for pid, _ in found:  # grows in the meantime
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += [(int(child), pid) for child in path.read_text(encoding="ascii").split()]
            except OSError:
                continue
    return found
