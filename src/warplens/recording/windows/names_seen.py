"""Reads the names in a spool, for the message that the awaited range never came."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from warplens.recording.agent.control_file import CHUNK_END, FIRST_CHUNK

# ChunkHeader and StringHead in native/include/warplens/format.h
_CHUNK = struct.Struct("<IBBHQ")
_CHUNK_HEADER = 64
_STRINGS = 2
_STRING = struct.Struct("<II")
_FILES = 64
_BYTES = 4 << 20  # of all files together
_NEAR = 3


def names_seen(spool: Path) -> set[str]:
    """Return the names of ranges, domains and the like in `spool`.

    Of a large spool, the first ones.
    """
    names: set[str] = set()
    left = _BYTES
    for path in sorted(spool.glob("*.spool"))[:_FILES]:
        try:
            for content in _string_chunks(path):
                names.update(_strings(content[:left]))
                left -= len(content)
                if left <= 0:
                    return names
        except OSError:
            continue
    return names


def like(wanted: str, names: set[str]) -> list[str]:
    """Return the few of `names` that somebody may have meant by `wanted`, the likeliest first."""
    import difflib  # slow to load, and hardly ever needed

    by_small = {name.lower(): name for name in sorted(names) if name != wanted}
    near = difflib.get_close_matches(wanted.lower(), by_small, n=_NEAR, cutoff=0.6)
    inside = [small for small in by_small if wanted.lower() in small and small not in near]
    return [by_small[small] for small in near + inside][:_NEAR]


def _string_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        header = file.read(CHUNK_END + 8)
        if len(header) < CHUNK_END + 8:
            return
        (at,), (end,) = (
            struct.unpack_from("<I", header, FIRST_CHUNK),
            struct.unpack_from("<Q", header, CHUNK_END),
        )
        end = min(end, os.fstat(file.fileno()).st_size)
        while at < end:
            file.seek(at)
            chunk = file.read(_CHUNK.size)
            if len(chunk) < _CHUNK.size:
                return
            _, kind, _, _, size = _CHUNK.unpack(chunk)
            if size < _CHUNK_HEADER:
                return
            if kind == _STRINGS:
                file.seek(at + _CHUNK_HEADER)
                yield file.read(min(size - _CHUNK_HEADER, _BYTES))
            at += size


def _strings(content: bytes) -> Iterator[str]:
    at = 0
    while at + _STRING.size <= len(content):
        length_plus_1, _ = _STRING.unpack_from(content, at)
        if length_plus_1 == 0:
            return
        begin = at + _STRING.size
        text = content[begin : begin + length_plus_1 - 1]
        if text[:1] not in (b"{", b"["):  # definitions of payloads and counters are texts, too
            yield text.decode("utf-8", errors="replace")
        at = (begin + length_plus_1 - 1 + 7) & ~7
