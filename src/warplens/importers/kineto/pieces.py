"""The text of a file, piece by piece, unpacked on the way where it is packed."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

from warplens.errors import ReportError
from warplens.importers.unpacking import GZIP, Unpacking

MAGIC = b"\x1f\x8b"
_PIECE = 1 << 17
_STEP = 1 << 14
_AHEAD = 4  # pieces that are unpacked while others are read
_PATIENCE_S = 0.2


def head(path: Path, size: int) -> bytes:
    """Return the first bytes of the text; fewer where the file is shorter or its packing broken.

    Raises OSError.
    """
    with open(path, "rb") as file:
        start = file.read(size)
    if not start.startswith(MAGIC):
        return start
    try:
        return zlib.decompressobj(wbits=31).decompress(start, size)
    except zlib.error:
        return b""


class TextPieces:
    """The pieces of a file's text.

    `trouble` says what was wrong with its packing, empty if nothing; `done` how far we are (0 to
    1).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = ""
        self.done = 0.0
        self.packed = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            with open(self.path, "rb") as file:
                total = self.path.stat().st_size or 1
                start = file.read(_PIECE)
                self.packed = start.startswith(MAGIC)
                source = self._raw(start, file.read, total)
                yield from _ahead(self._unpacked(source)) if self.packed else source
        except OSError as error:
            raise ReportError(f"cannot read {self.path}: {error.strerror or error}.") from error

    def _raw(self, piece: bytes, read: Callable[[int], bytes], total: int) -> Iterator[bytes]:
        seen = 0
        while piece:
            seen += len(piece)
            self.done = min(seen / total, 1.0)
            yield piece
            piece = read(_PIECE)

    def _unpacked(self, source: Iterator[bytes]) -> Iterator[bytes]:
        """Yield what is in the packed pieces.

        It is unpacked in small steps: what is lost at a broken place is one of them.
        """
        unpacking = Unpacking(self.path)
        unpack, at, within = unpacking.begin(GZIP), 0, False
        for piece in source:
            for begin in range(0, len(piece), _STEP):
                rest = piece[begin : begin + _STEP]
                while rest:
                    try:
                        yield from unpacking.pieces(unpack, rest)
                    except zlib.error as error:
                        if within or not at + begin:
                            self.trouble = f"its packing is broken near byte {at + begin} ({error})"
                        return  # else: zeros behind the end, from a tape or a block device
                    rest, within = unpack.unused_data, not unpack.eof
                    if unpack.eof:  # another member may follow
                        unpack = unpacking.begin(GZIP)
                        if not rest.strip(b"\0"):
                            break
            at += len(piece)
        if within:
            yield unpack.flush()
            self.trouble = f"it ends at byte {at} within what is packed"


def _ahead(source: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what `source` yields, made by another thread in the meantime."""
    queue: Queue[bytes | BaseException | None] = Queue(_AHEAD)
    over = threading.Event()

    def put(item: bytes | BaseException | None) -> bool:
        while not over.is_set():
            try:
                queue.put(item, timeout=_PATIENCE_S)
                return True
            except Exception:
                continue
        return False

    def work() -> None:
        try:
            for piece in source:
                if not put(piece):
                    return
            put(None)
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=work, name="warplens-unpack", daemon=True)
    worker.start()
    try:
        while True:
            try:
                item = queue.get(timeout=_PATIENCE_S)
            except Empty:
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        worker.join()
