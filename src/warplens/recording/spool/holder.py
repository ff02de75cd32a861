"""Keeps spool files open so that a deleted spool directory can be restored.

A deleted file lives as long as somebody has it open. The keeper opens each new spool file, makes the directory again when
it is gone, so that processes started from then on record again, and at the end copies back what was deleted.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from warplens.disk.files import create
from warplens.handover.pending import writer_of
from warplens.recording.agent.control_file import ControlPage, ended_orderly

_SETTLE_NS = 50_000_000  # directory times are coarse: a listing younger than this may have missed a file


class SpoolKeeper:
    """Watches one spool directory.

    `look` is called a few times a second from one thread, `rescue` at the end.
    """

    def __init__(self, spool: Path, control: ControlPage, *, limit: int = 256) -> None:
        self.deleted = 0
        self.lost = 0
        self.not_held = 0
        self._spool = spool
        self._control = control
        self._limit = limit
        self._held: dict[str, tuple[int, tuple[int, int]]] = {}
        self._seen: set[str] = set()
        self._alive: dict[str, int] = {}
        self._last_alive: dict[str, int] = {}
        self._listed_ns = 0

    def look(self) -> None:
        """Open the spool files that are new, and bring the directory back if it is gone.

        See who lives. Never raises OSError.
        """
        self._see_who_lives()
        try:
            changed_ns = self._spool.stat().st_mtime_ns
        except OSError:
            self._bring_back()
            return
        if changed_ns + _SETTLE_NS < self._listed_ns:
            return
        self._listed_ns = time.time_ns()
        try:
            names = [
                path.name
                for path in self._spool.iterdir()
                if path.suffix == ".spool" and path.name not in self._seen
            ]
        except OSError:
            return
        for name in names:
            self._seen.add(name)
            if len(self._held) >= self._limit:
                self.not_held += 1
                continue
            try:
                descriptor = os.open(self._spool / name, os.O_RDONLY | os.O_CLOEXEC)
                self._held[name] = descriptor, _identity(descriptor)
                if writer := writer_of(Path(name)):
                    self._alive[name] = writer[0]
            except OSError:
                self.not_held += 1

    def killed(self) -> dict[str, int]:
        """Return the last time each process was seen alive (ns, CLOCK_MONOTONIC), if it did not report its end."""
        found = {}
        for name, time_ns in self._last_alive.items():
            held = self._held.get(name)
            try:
                if held is not None and not ended_orderly(held[0]):
                    found[name] = time_ns
            except OSError:
                continue
        return found

    def rescue(self) -> int:
        """Copy deleted spool files back into the directory, release all.

        Return the number of copied files.
        """
        rescued = 0
        for name, (descriptor, identity) in self._held.items():
            path = self._spool / name
            try:
                if not path.exists():
                    if _identity(descriptor) != identity:
                        raise OSError
                    self._copy(descriptor, path)
                    rescued += 1
            except OSError:
                self.lost += 1  # what a full disk cut short stays: readers accept half a spool
        self.release()
        if self.deleted:
            self.lost += self.not_held
        return rescued

    def let_go(self, name: str) -> None:
        """Close one file, if it is held: it is to be removed."""
        self._seen.discard(name)
        self._alive.pop(name, None)
        self._last_alive.pop(name, None)
        if held := self._held.pop(name, None):
            _close(*held)

    def release(self) -> None:
        """Close the files that are held."""
        for descriptor, identity in self._held.values():
            _close(descriptor, identity)
        self._held.clear()

    def _see_who_lives(self) -> None:
        for name, pid in list(self._alive.items()):
            now = time.monotonic_ns()
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                del self._alive[name]
                continue
            except OSError:
                pass  # another user's now: alive
            self._last_alive[name] = now

    def _bring_back(self) -> None:
        try:
            self._spool.mkdir(parents=True, mode=0o700)
            self._control.write_again(self._spool / "control")
        except OSError:
            return
        self.deleted += 1
        self._listed_ns = 0

    @staticmethod
    def _copy(descriptor: int, path: Path) -> None:
        with os.fdopen(os.dup(descriptor), "rb") as source, create(path) as target:
            source.seek(0)
            while block := source.read(1 << 20):
                target.write(block)


def _close(descriptor: int, identity: tuple[int, int]) -> None:
    try:
        if (
            _identity(descriptor) == identity
        ):  # a program that closes all there is may have opened others since
            os.close(descriptor)
    except OSError:
        pass


def _identity(descriptor: int) -> tuple[int, int]:
    stat = os.fstat(descriptor)
    return stat.st_dev, stat.st_ino
