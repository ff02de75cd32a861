"""Finds the chunks of a spool file, stepping over what is damaged."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

from warpline.spool.layout import PAGE, Head

MAGIC = 0x4B484357
NO_THREAD = 0xFFFFFFFF
RECORDS, STRINGS, OPEN, BLOBS = 1, 2, 3, 4
_HEADER = struct.Struct("<IBBHQII")
HEADER_SIZE = 64


@dataclass(frozen=True)
class Chunk:
    """One chunk: `offset` and `size` of its contents, header excluded."""

    kind: int
    stride: int
    thread: int
    offset: int
    size: int


def walk(data: mmap.mmap, head: Head, length: int) -> tuple[list[Chunk], int]:
    """Return the chunks of a file of `length` bytes, and how many damaged places were stepped over."""
    limit = head.chunk_end if PAGE <= head.first_chunk <= head.chunk_end <= length and head.chunk_end % PAGE == 0 else length
    # A header that points nowhere: chunks lie on pages, so looking at all of them finds the same ones.
    at = head.first_chunk if PAGE <= head.first_chunk <= limit and head.first_chunk % PAGE == 0 else PAGE
    damaged = int(head.first_chunk != at)
    chunks = []
    while at + HEADER_SIZE <= limit:
        magic, kind, _, stride, size, thread, _ = _HEADER.unpack_from(data, at)
        if magic != MAGIC or kind not in (RECORDS, STRINGS, OPEN, BLOBS):
            damaged += int(magic != 0)
            at = _next(data, at + PAGE, limit)
            continue
        if size < PAGE or size % PAGE or at + size > limit:
            # Cut off, or a broken length: up to where the next chunk begins.
            damaged += 1
            size = _next(data, at + PAGE, limit) - at
        chunks.append(Chunk(kind, stride, thread, at + HEADER_SIZE, size - HEADER_SIZE))
        at += size
    return chunks, damaged


def _next(data: mmap.mmap, at: int, limit: int) -> int:
    word = MAGIC.to_bytes(4, "little")
    while at + HEADER_SIZE <= limit:
        if data[at : at + 4] == word:
            return at
        at += PAGE
    return limit
