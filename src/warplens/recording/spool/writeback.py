"""Makes the kernel write a spool to the disk while it grows, so that little of it waits in memory.

Never in the program.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from pathlib import Path

from warplens.recording.agent.control_file import CHUNK_END

_EVERY_S = 0.5
_STEP = 4 << 20  # less than that is left to the kernel, which writes what is half a minute old
_PATIENCE_S = 1.0
_SYNC_FILE_RANGE_WRITE = 2


class Writeback:
    """Looks at the files of `spool` from `start` to `stop`, on a thread of the launcher.

    A slow disk may keep it waiting.
    """

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._begun: dict[str, int] = {}  # how much of each file is on its way
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warplens-writeback", daemon=True)
        self._sync = getattr(ctypes.CDLL(None), "sync_file_range", None)
        if self._sync is not None:
            self._sync.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

    def start(self) -> None:
        """Start the thread; without one, the kernel decides alone."""
        try:
            self._thread.start()
        except RuntimeError:
            self._stop.set()

    def stop(self) -> None:
        """End the thread; one that the disk keeps waiting ends later."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE_S)

    def look(self) -> None:
        """Begin to write what is new in each file, without waiting for it. Never raises OSError."""
        try:
            with os.scandir(self._spool) as entries:
                spools = [entry for entry in entries if entry.name.endswith(".spool")]
                self._begun = {
                    entry.name: self._begun[entry.name] for entry in spools if entry.name in self._begun
                }
                for entry in spools:
                    if entry.stat().st_size - self._begun.get(entry.name, 0) >= _STEP:
                        self._write(entry)
        except OSError:
            return  # deleted, or no more descriptors: the next look may do better

    def _run(self) -> None:
        while self._sync is not None and not self._stop.wait(_EVERY_S):
            self.look()

    def _write(self, entry: os.DirEntry[str]) -> None:
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            (end,) = struct.unpack("<Q", os.pread(descriptor, 8, CHUNK_END).ljust(8, b"\0"))
            begun = self._begun.get(entry.name, 0)
            if self._sync is not None and begun + _STEP <= end < 1 << 62:
                self._sync(descriptor, begun, end - begun, _SYNC_FILE_RANGE_WRITE)
                self._begun[entry.name] = end
        finally:
            os.close(descriptor)
