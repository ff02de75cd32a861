"""Reads the buffers of kernel launches, piece by piece.

A piece is a separate buffer that fits into memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warplens.spool import chunks as chunking

_HEAD = struct.Struct("<IIQQ")  # BlobHead
_GENERATION = 48  # kBlobGeneration
_CONTINUED = 4  # kBlobContinued
_LARGEST = 1 << 20  # of a blob
_MOST_BLOBS = 64  # of a piece: its unit is larger than any recorder makes it

STORED, UNREADABLE, NO_BUFFER, LIMIT, NO_SPACE, NOT_AWAITED, CHILD = range(1, 8)  # IntrakernelResult


class Pieces:
    """Finds the pieces of launches in a spool."""

    def __init__(self, memory: npt.NDArray[np.uint8], chunks: list[chunking.Chunk]) -> None:
        blobs = sorted(
            (chunk for chunk in chunks if chunk.kind == chunking.BLOBS), key=lambda chunk: chunk.offset
        )
        self._memory = memory
        self._chunks = blobs
        self._begins = np.array([chunk.offset for chunk in blobs], np.int64)
        self.lost = 0  # blobs that are not where they should be

    def of(self, index: int) -> Iterator[npt.NDArray[np.uint8]]:
        """Return the pieces listed in the blob at `index` (IntrakernelReadRecord::blob).

        None for 0.
        """
        if not index:
            return
        places = self._blob(index)
        if places is None:
            self.lost += 1
            return
        parts: list[npt.NDArray[np.uint8]] = []
        for place in places[0][: len(places[0]) // 8 * 8].view("<u8").tolist():
            blob = self._blob(place)
            if blob is None:
                self.lost += 1
                parts = []
                continue
            parts.append(blob[0])
            if blob[1] & _CONTINUED and len(parts) < _MOST_BLOBS:
                continue
            yield parts[0] if len(parts) == 1 else np.concatenate(parts)
            parts = []

    def _blob(self, place: int) -> tuple[npt.NDArray[np.uint8], int] | None:
        """Return the bytes and flags of a blob, None if there is none."""
        offset, generation = place & ((1 << _GENERATION) - 1), place >> _GENERATION
        at = int(np.searchsorted(self._begins, offset, side="right")) - 1
        if at < 0:
            return None
        chunk = self._chunks[at]
        end = chunk.offset + chunk.size
        if offset % 8 or offset + _HEAD.size > end or chunk.generation & 0xFFFF != generation:
            return None
        size_plus_1, flags, _, _ = _HEAD.unpack_from(self._memory[offset : offset + _HEAD.size].tobytes())
        begin = offset + _HEAD.size
        if not 0 < size_plus_1 <= _LARGEST + 1 or begin + size_plus_1 - 1 > end:
            return None
        return self._memory[begin : begin + size_plus_1 - 1], flags


def tag_names(text: str | None) -> dict[int, str]:
    """Return the names of tags by their numbers: lines `number name`.

    Lines that are none are left out.
    """
    tags = {}
    for line in (text or "").splitlines():
        number, _, name = line.partition(" ")
        if number.isascii() and number.isdigit() and len(number) < 6 and name:
            tags[int(number)] = name
    return tags
