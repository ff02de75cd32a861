"""Writes recordings of Python's sampling profiler, from the description of the format: any order of bytes, packed or not."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa

REPEAT, FULL, SUFFIX, POP_PUSH = range(4)


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def signed(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


class TachyonFile:
    """Samples are added one by one; `write` puts the file together."""

    def __init__(self, begin: int = 5_000_000, interval: int = 1000, order: str = "<") -> None:
        """Times in us."""
        self.order, self.begin, self.interval = order, begin, interval
        self.texts: list[str] = []
        self.frames: list[tuple[str, str, int]] = []
        self.data = b""
        self.count = 0
        self.threads: set[tuple[int, int]] = set()

    def frame(self, file: str, function: str, line: int) -> int:
        frame = (file, function, line)
        if frame not in self.frames:
            self.frames.append(frame)
        return self.frames.index(frame)

    def sample(
        self, kind: int, tid: int, step: int, status: int, *numbers: int, interpreter: int = 0
    ) -> TachyonFile:
        """A sample `step` us after the one before. `numbers`: what is behind its status."""
        self._head(kind, tid, interpreter)
        self.data += varint(step) + bytes([status]) + b"".join(map(varint, numbers))
        self.count += 1
        return self

    def repeat(self, tid: int, *ticks: tuple[int, int]) -> TachyonFile:
        """Samples with the stack of the one before: step and status of each."""
        self._head(REPEAT, tid, 0)
        self.data += varint(len(ticks)) + b"".join(varint(step) + bytes([status]) for step, status in ticks)
        self.count += len(ticks)
        return self

    def _head(self, kind: int, tid: int, interpreter: int) -> None:
        self.threads.add((tid, interpreter))
        self.data += struct.pack(f"{self.order}QIB", tid, interpreter, kind)

    def _number(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def bytes(self, *, packed: bool = False, wide: bool = True, version: int = 1, opcode: int = 255) -> bytes:
        """`wide`: the number of samples has eight bytes, as in newer files."""
        frames = b"".join(
            varint(self._number(file))
            + varint(self._number(function))
            + signed(line)
            + signed(0)
            + signed(4)
            + signed(9)
            + bytes([opcode])
            for file, function, line in self.frames
        )
        texts = b"".join(varint(len(text.encode())) + text.encode() for text in self.texts)
        data = pa.Codec("zstd").compress(self.data, asbytes=True) if packed else self.data
        at = 64 + len(data)
        size = at + len(texts) + len(frames) + 32
        head = struct.pack(
            f"{self.order}II4sQQ{'Q' if wide else 'I'}IQQI",
            0x54414348,
            version,
            bytes([3, 15, 2, 0]),
            self.begin,
            self.interval,
            self.count,
            len(self.threads),
            at,
            at + len(texts),
            int(packed),
        )
        foot = struct.pack(f"{self.order}IIQ16x", len(self.texts), len(self.frames), size)
        return head.ljust(64, b"\0") + data + texts + frames + foot

    def write(self, path: Path, *, packed: bool = False, wide: bool = True) -> Path:
        path.write_bytes(self.bytes(packed=packed, wide=wide))
        return path
