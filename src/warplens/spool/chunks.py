"""Finds the chunks of a spool file, and skips damaged ones."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from io import FileIO

from warplens.spool.layout import PAGE, Head

MAGIC = 0x4B484357
NO_THREAD = 0xFFFFFFFF
RECORDS, STRINGS, OPEN, BLOBS, WIDE = 1, 2, 3, 4, 5
_HEADER = struct.Struct("<IBBHQIIH")
HEADER_SIZE = 64
_SEQUENCE = 20  # where it lies in a header
_AT_ONCE = 16 << 20
_RENEWING = 0xFFFFFFFF  # a flight recorder is just emptying it


@dataclass(frozen=True)
class Chunk:
    """One chunk: `offset` and `size` of its contents, header excluded.

    A flight recorder fills chunks again: they were taken in the order of `sequence`; `generation` says how often this one was emptied.
    `record`: the type of all records, if it is wide.
    """

    kind: int
    stride: int
    thread: int
    offset: int
    size: int
    sequence: int = 0
    generation: int = 0
    record: int = 0


def walk(data: mmap.mmap | bytes, head: Head, length: int) -> tuple[list[Chunk], int]:
    """Return the chunks of a file of `length` bytes, and how many damaged places were stepped over."""
    limit = (
        head.chunk_end
        if PAGE <= head.first_chunk <= head.chunk_end <= length and head.chunk_end % PAGE == 0
        else length
    )
    # A header that points nowhere: chunks lie on pages, so looking at all of them finds the same ones.
    at = head.first_chunk if PAGE <= head.first_chunk <= limit and head.first_chunk % PAGE == 0 else PAGE
    damaged = int(head.first_chunk != at)
    chunks = []
    while at + HEADER_SIZE <= limit:
        magic, kind, record, stride, size, thread, sequence, generation = _HEADER.unpack_from(data, at)
        if magic != MAGIC or kind not in (RECORDS, STRINGS, OPEN, BLOBS, WIDE):
            damaged += int(magic != 0)
            at = _next(data, at + PAGE, limit)
            continue
        if size < PAGE or size % PAGE or at + size > limit:
            # Cut off, or a broken length: up to where the next chunk begins.
            damaged += 1
            size = _next(data, at + PAGE, limit) - at
        if sequence != _RENEWING:
            chunks.append(
                Chunk(
                    kind,
                    stride,
                    thread,
                    offset=at + HEADER_SIZE,
                    size=size - HEADER_SIZE,
                    sequence=sequence,
                    generation=generation,
                    record=record,
                )
            )
        at += size
    return chunks, damaged


def copy(file: FileIO, head: Head, length: int) -> mmap.mmap:
    """Return a copy of a file whose chunks may be written again in the meantime.

    Those that were look empty in it.
    """
    # Shared memory, as it is by default: pages that are given back keep what they hold.
    whole = mmap.mmap(-1, length)
    view = memoryview(whole)
    file.seek(0)
    at = 0
    while at < length and (read := file.readinto(view[at : at + _AT_ONCE])):
        at += read
    view.release()
    for chunk in walk(whole, head, length)[0]:
        begin = chunk.offset - HEADER_SIZE
        file.seek(begin)
        if file.read(_HEADER.size) != whole[begin : begin + _HEADER.size]:
            struct.pack_into("<I", whole, begin + _SEQUENCE, _RENEWING)
    return whole


def _next(data: mmap.mmap | bytes, at: int, limit: int) -> int:
    word = MAGIC.to_bytes(4, "little")
    while at + HEADER_SIZE <= limit:
        if data[at : at + 4] == word:
            return at
        at += PAGE
    return limit
