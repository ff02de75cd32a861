"""A file of samples in a spool directory, bounded by --max-size and --keep-last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from warplens.disk import files

STEP = 1 << 16  # bytes that are charged at once
_ROOM = 1 << 20  # a file that is smaller is left as it is


class SampleFile:
    """Lines of JSON: a head, then samples that begin with their time in ns, `[TIME, …]`.

    OSError if it cannot be made.

    `charge` counts bytes (below 0: they are free again) and says whether they fit. `is_wanted` says of a time whether samples of it are to
    be kept; None: all are.
    """

    def __init__(
        self, path: Path, head: str, charge: Callable[[int], bool], is_wanted: Callable[[int], bool] | None
    ) -> None:
        self._path = path
        self._head = f"{head}\n".encode()
        self._charge = charge
        self._is_wanted = is_wanted
        self._size = self._charged = 0
        self._sweep_at = _ROOM
        files.write(path, self._head)
        self._size = len(self._head)

    def add(self, line: str) -> bool:
        """Write a sample; False if it does not fit, or the disk is full."""
        data = f"{line}\n".encode()
        if self._is_wanted is not None and self._size > self._sweep_at:
            self._sweep(self._is_wanted)
        if self._size + len(data) > self._charged:
            if not self._charge(STEP):
                return False
            self._charged += STEP
        try:
            with files.append(self._path) as file:
                file.write(data)
        except OSError:
            return False
        self._size += len(data)
        return True

    def _sweep(self, is_wanted: Callable[[int], bool]) -> None:
        """Write the file again with what is wanted; on a full disk it stays as it is for now."""
        try:
            with self._path.open("rb") as file:
                lines = [line for line in file.readlines()[1:] if is_wanted(_time(line))]
            data = self._head + b"".join(lines)
            files.write(self._path, data)
        except OSError:
            self._sweep_at = self._size + _ROOM
            return
        self._size = len(data)
        self._sweep_at = max(_ROOM, 2 * self._size)
        freed = (self._charged - self._size) // STEP * STEP
        if freed > 0:
            self._charge(-freed)
            self._charged -= freed


def _time(line: bytes) -> int:
    text = line[1 : line.find(b",")]
    return int(text) if text.isdigit() else 0
