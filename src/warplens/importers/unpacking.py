"""Unpacks gzip and deflate piece by piece, and no further than a recording can have been packed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from warplens.errors import ReportError

GZIP, DEFLATE = 31, 15  # as zlib names them
_PIECE = 1 << 20  # bytes that are unpacked at once
_LITTLE = 256 << 20  # bytes up to which it does not matter how far they were packed
_SHRINKS = 500  # of text, a twentieth is left; deflate itself can leave a thousandth


class Unpacking:
    """Unpacks a file in parts, and rejects data that would fill the memory. `source` is for messages."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._taken = self._given = 0

    def begin(self, kind: int) -> zlib._Decompress:
        """Return what unpacks one member."""
        return zlib.decompressobj(wbits=kind)

    def pieces(self, unpack: zlib._Decompress, data: bytes) -> Iterator[bytes]:
        """Yield what is in some packed bytes.

        Raises zlib.error, and ReportError if it was made to fill the memory.
        """
        self._taken += len(data)
        while True:
            piece = unpack.decompress(data, _PIECE)
            self._given += len(piece)
            if self._given > _LITTLE and self._given > _SHRINKS * self._taken:
                amounts = f"{self._taken:,} bytes of it unpack to more than {self._given >> 20:,} MiB"
                raise ReportError(
                    f"{self._source} is not a recording: {amounts}, which would fill the memory."
                )
            yield piece
            data = unpack.unconsumed_tail
            if unpack.eof or (not data and len(piece) < _PIECE):
                return
