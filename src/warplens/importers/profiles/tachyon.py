"""Reads the `--binary` files of Python 3.15's sampling profiler: a header, samples, texts, frames, a footer.

All numbers of a fixed size are in the byte order of the machine that wrote the file, which its first four bytes show. Others are seven
bits a byte, the lowest first; those with a sign alternate: 0, -1, 1, -2. A sample says how its stack differs from the one before of
the same thread; times are differences, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from warplens.model.words import counted

MAGICS = {b"HCAT": "<", b"TACH": ">"}
HEADER, _FOOTER = 64, 32
# Version, Python, begin and interval (us), samples, threads, where texts and frames begin, compression. The number of samples had four
# bytes at first, and got eight under the same version.
_LAYOUTS = ("4xI3BxQQIIQQI", "4xI3BxQQQIQQI")
_VERSION = 1
_NONE, _ZSTD = 0, 1  # compressions
_REPEAT, _FULL, _SUFFIX, _POP_PUSH = 0, 1, 2, 3  # how a stack is written
_DEEPEST = 4096
_MOST_THREADS = 1 << 16
_MOST = 1 << 31  # bytes of samples, unpacked
HAS_GIL, ON_CPU, UNKNOWN, EXCEPTION, MAIN = 1, 2, 4, 16, 32  # of the status of a thread

Frame = tuple[str, str, int]  # file, function, line; the line is 0 or less for what is not in a file


class Broken(ValueError):
    """The file does not hold what its header says."""


@dataclass(frozen=True)
class TachyonHeader:
    """The file's data about the recording; times in us of the monotonic clock."""

    python: str
    begin: int
    interval: int
    samples: int
    texts_at: int
    frames_at: int
    compression: int


@dataclass
class TachyonThread:
    """A thread of an interpreter, as of the sample that was read last.

    `stack`: frames, the outermost first.
    """

    id: int
    interpreter: int
    time: int
    stack: list[int] = field(default_factory=list)


class TachyonFile:
    """A file. Raises Broken."""

    def __init__(self, data: bytes) -> None:
        """`data`: all of the file."""
        self._data = data
        order = MAGICS.get(data[:4])
        if order is None or len(data) < HEADER + _FOOTER:
            raise Broken("it is too short" if order else "it has another beginning")
        self._fixed = struct.Struct(f"{order}QIB")
        self.header = _header(data, order)
        texts, frames, size = struct.unpack_from(f"{order}IIQ", data, len(data) - _FOOTER)
        if size != len(data):
            raise Broken(
                f"it was written with {size:,} bytes and has {len(data):,}: it is truncated, or not finished"
            )
        strings = self._texts(texts)
        self.frames = self._frames(frames, strings)

    def samples(self) -> Iterator[tuple[TachyonThread, int, list[tuple[int, int]]]]:
        """Yield ticks of a thread with the same stack.

        The thread, how many frames it kept, time (us) and status of each.
        """
        data = self._samples()
        threads: dict[tuple[int, int], TachyonThread] = {}
        at, seen = 0, 0
        while at < len(data):
            if at + self._fixed.size > len(data):
                raise Broken(f"its samples are cut off at byte {at:,}")
            id, interpreter, kind = self._fixed.unpack_from(data, at)
            thread = threads.get((id, interpreter))
            if thread is None:
                if len(threads) >= _MOST_THREADS:
                    raise Broken(f"it has more than {_MOST_THREADS:,} threads")
                thread = threads[id, interpreter] = TachyonThread(id, interpreter, self.header.begin)
            at += self._fixed.size
            count = 1
            if kind == _REPEAT:
                count, at = varint(data, at)
                if count > len(data) - at:
                    raise Broken(f"a stack is repeated {count:,} times at byte {at:,}, where the samples end")
            ticks = []
            for _ in range(count):
                step, at = varint(data, at)
                if at >= len(data):
                    raise Broken("its samples are cut off")
                thread.time += step
                ticks.append((thread.time, data[at]))
                at += 1
            kept = len(thread.stack)
            if kind != _REPEAT:
                kept, at = self._changed(thread, kind, data, at=at)
            seen += count
            if ticks:
                yield thread, kept, ticks
        if seen != self.header.samples:
            raise Broken(f"its header counts {counted(self.header.samples, 'sample')}, the file has {seen:,}")

    def _changed(self, thread: TachyonThread, kind: int, data: bytes, at: int) -> tuple[int, int]:
        """Read a change of a stack: how many outer frames it kept, and where the next sample is."""
        depth = len(thread.stack)
        if kind == _FULL:
            kept = 0
        elif kind in (_SUFFIX, _POP_PUSH):
            number, at = varint(data, at)
            kept = number if kind == _SUFFIX else max(depth - number, 0)
        else:
            raise Broken(f"a sample before byte {at:,} is of the unknown kind {kind}")
        count, at = varint(data, at)
        if kept > depth or kept + count > _DEEPEST:
            raise Broken(
                f"a stack of {kept + count:,} frames, {kept:,} of them known, follows one of {depth:,}"
            )
        pushed = []
        for _ in range(count):
            frame, at = varint(data, at)
            if frame >= len(self.frames):
                raise Broken(f"a sample is in the frame {frame:,} of {len(self.frames):,}")
            pushed.append(frame)
        thread.stack[kept:] = reversed(pushed)
        return kept, at

    def _samples(self) -> bytes:
        packed = self._data[HEADER : self.header.texts_at]
        if self.header.compression == _NONE or not packed:
            return packed
        pieces, size = [], 0
        try:
            with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                while piece := stream.read(1 << 24):
                    pieces.append(piece)
                    size += len(piece)
                    if size > _MOST:
                        raise Broken("its samples are more than 2 GiB")
        except OSError as error:
            raise Broken(f"its samples cannot be unpacked ({error})") from error
        return b"".join(pieces)

    def _texts(self, count: int) -> list[str]:
        texts, at, end = [], self.header.texts_at, self.header.frames_at
        for _ in range(count):
            length, at = varint(self._data, at)
            if at + length > end:
                raise Broken("its texts are longer than their part of the file")
            texts.append(self._data[at : at + length].decode("utf-8", "replace"))
            at += length
        return texts

    def _frames(self, count: int, texts: list[str]) -> list[Frame]:
        """Read the frames; end line, columns and instruction are not wanted."""
        frames, at = [], self.header.frames_at
        for _ in range(count):
            file, at = varint(self._data, at)
            function, at = varint(self._data, at)
            line, at = varint(self._data, at)
            for _ in range(3):
                _, at = varint(self._data, at)
            at += 1
            if max(file, function) >= len(texts):
                raise Broken(f"a frame has the text {max(file, function):,} of {len(texts):,}")
            frames.append((texts[file], texts[function], min((line >> 1) ^ -(line & 1), 2**31 - 1)))
        return frames


def _header(data: bytes, order: str) -> TachyonHeader:
    """Read the header in the layout in which its places lie in the file."""
    (version,) = struct.unpack_from(f"{order}I", data, 4)
    python = ".".join(map(str, data[8:11]))
    if version != _VERSION:
        raise Broken(
            f"Python {python} wrote it in version {version} of the format; this warplens reads "
            f"version {_VERSION}"
        )
    for layout in _LAYOUTS:
        _, *_, begin, interval, samples, _, texts, frames, compression = struct.unpack_from(
            order + layout, data
        )
        if HEADER <= texts <= frames <= len(data) - _FOOTER and compression in (_NONE, _ZSTD):
            return TachyonHeader(
                python,
                begin,
                interval,
                samples=samples,
                texts_at=texts,
                frames_at=frames,
                compression=compression,
            )
    raise Broken(
        "its header has no positions of its parts: it is not finished, or its compression is unknown"
    )


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and what is behind it. Raises Broken."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Broken(f"a number is cut off at byte {at:,}")
