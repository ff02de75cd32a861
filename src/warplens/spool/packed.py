"""Packs pages of a spool while its process runs, so that the disk gets their space back.

Nothing is lost.

`NAME.spool.packed` lies beside `NAME.spool`. Each of its blocks says where in the spool its bytes were. `whole` puts them back for a reader
that begins at the beginning. A page goes after its copy is on the disk, so a killed process leaves it in one place at least.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.disk.folder import Folder
from warplens.disk.full import is_full
from warplens.handover.naming import PACKED
from warplens.spool.layout import PAGE
from warplens.spool.notes import Note

if sys.platform != "win32":
    import fcntl

MOST = 1 << 20  # bytes of the spool in a block
_MAGIC = b"WLPK"
_CHECK = 8  # bytes of a head before what its checksum covers
# Magic, CRC-32 of the rest and the body; offset and bytes in the spool; bytes of the body, of a record, of the columns in the body.
_HEAD = struct.Struct("<4sIQIIII")

Span = tuple[int, int]


def can_take_out() -> bool:
    """Say whether this system can take pages out of a file."""
    return hasattr(mmap, "MADV_REMOVE") and sys.platform != "win32"


def take_out(path: Path, spans: Sequence[Span], stride: int) -> int:
    """Pack pages of a spool file and give their space back; return how many bytes that were.

    `spans`: begin and end of pages that nobody writes to any more, multiples of PAGE. `stride`: bytes of a record in them. 0 if another
    reads the spool, or the copy finds no room. OSError if the disk cannot give pages back: the copy stays, and harms nobody.
    """
    with Folder(path.parent) as folder, folder.update(path.name) as file:
        mapped = mmap.mmap(file.fileno(), 0)
        try:
            if not _add(folder, path.stem + PACKED, mapped, spans=spans, stride=stride) or not _lock(
                folder, wait=False
            ):
                return 0
            for begin, end in spans:
                mapped.madvise(mmap.MADV_REMOVE, begin, end - begin)
        finally:
            mapped.close()
    return sum(end - begin for begin, end in spans)


@dataclass
class Whole:
    """Spools that can be read from the beginning.

    `notes`: one for each damaged copy. `in_memory`: files that had no room on the disk.
    """

    notes: list[Note] = field(default_factory=list)
    in_memory: set[str] = field(default_factory=set)


@contextmanager
def whole(directory: Path, *, live: bool = False, memory: int = 0) -> Iterator[Whole]:
    """Put everything back that was taken out of the spools in a directory.

    Nobody takes anything out in the meantime.

    `live`: their processes continue, so the pages go again at the end. `memory`: a file of at most this number of bytes stays
    as it is where the
    disk has no room for it: its reader copies it into memory (`fill`). OSError.
    """
    with Folder(directory) as folder:
        _lock(folder, wait=True)
        made = Whole()
        back: dict[str, list[Span]] = {}
        for name in folder.names():
            if name.endswith(PACKED):
                spool = name.removesuffix(PACKED) + ".spool"
                try:
                    _put_back(folder, name, spool, spans=back.setdefault(spool, []), notes=made.notes)
                except OSError as error:
                    _take_again(folder, spool, back.pop(spool))
                    if not is_full(error) or (directory / spool).stat().st_size > memory:
                        raise
                    made.in_memory.add(spool)
        yield made
        for spool, spans in back.items() if live else ():
            _take_again(folder, spool, spans)


def fill(path: Path, copy: mmap.mmap) -> None:
    """Put back into a copy of the spool at `path` what was taken out of the file. OSError."""
    with Folder(path.parent) as folder, folder.read(path.stem + PACKED) as packed:
        for block in decode(packed, len(copy)):
            if block is not None:
                offset, data = block
                copy[offset : offset + len(data)] = data


def encode(offset: int, data: npt.NDArray[np.uint8], stride: int) -> bytes:
    """Return the block for the bytes of some pages, which begin at `offset` of their spool."""
    columns = _columns(data, stride)
    body: bytes = _codec().compress(columns, asbytes=True)
    rest = struct.pack("<QIIII", offset, len(data), len(body), stride, len(columns)) + body
    return _MAGIC + struct.pack("<I", zlib.crc32(rest)) + rest


def decode(file: BinaryIO, length: int) -> Iterator[tuple[int, bytes] | None]:
    """Yield the blocks of a packed file, for a spool of `length` bytes: offset and bytes.

    None for one that is damaged.

    What was cut off at the end is left out: the pages that it stands for are still in the spool.
    """
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        magic, check, offset, size, packed, stride, unpacked = _HEAD.unpack(head)
        if (
            magic != _MAGIC
            or size > MOST
            or packed > 2 * MOST
            or offset % PAGE
            or size % PAGE
            or offset + size > length
        ):
            yield None
            return
        body = file.read(packed)
        if len(body) < packed:
            return
        if (
            zlib.crc32(head[_CHECK:] + body) != check
            or not 0 < stride <= PAGE
            or stride % 8
            or unpacked > size + PAGE
        ):
            yield None
            continue
        try:
            yield (
                offset,
                _rows(
                    np.frombuffer(_codec().decompress(body, unpacked, asbytes=True), np.uint8), size, stride
                ).tobytes(),
            )
        except (pa.ArrowException, OSError, ValueError, IndexError):
            yield None


def _add(folder: Folder, name: str, mapped: mmap.mmap, spans: Sequence[Span], stride: int) -> bool:
    """Append the blocks of pages to a packed file.

    If there is no room for all, it is as it was.
    """
    memory = np.frombuffer(mapped, np.uint8)
    try:
        with folder.update(name, create=True, append=True) as file:
            before = file.seek(0, os.SEEK_END)
            try:
                for begin, end in spans:
                    for first in range(begin, end, MOST):
                        block = memoryview(encode(first, memory[first : min(first + MOST, end)], stride))
                        while block:
                            block = block[file.write(block) :]
                os.fdatasync(file.fileno())
            except OSError:
                file.truncate(before)
                return False
    finally:
        del memory
    return True


def _put_back(folder: Folder, name: str, spool: str, spans: list[Span], notes: list[Note]) -> None:
    damaged = 0
    with folder.read(name) as packed, folder.update(spool) as file:
        for block in decode(packed, os.fstat(file.fileno()).st_size):
            if block is None:
                damaged += 1
                continue
            offset, data = block
            spans.append((offset, offset + len(data)))
            file.seek(offset)
            file.write(data)
            file.flush()
    if damaged:
        message = f"{damaged} chunks of {name} are damaged and lost"
        notes.append(Note("warning", "spool-damaged", "spool", message=message, count=damaged))


def _take_again(folder: Folder, spool: str, spans: Sequence[Span]) -> None:
    with suppress(OSError), folder.update(spool) as file, mmap.mmap(file.fileno(), 0) as mapped:
        for begin, end in spans:
            mapped.madvise(mmap.MADV_REMOVE, begin, end - begin)


def _lock(folder: Folder, *, wait: bool) -> bool:
    """Keep others from taking pages out while the folder is open."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(folder.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # a disk without locks: nobody takes anything out there
        return False
    return True


@cache
def _codec() -> Any:
    return pa.Codec("zstd", compression_level=1)


def _columns(data: npt.NDArray[np.uint8], stride: int) -> npt.NDArray[np.uint8]:
    """Return the first record, then the differences of each record to the one before, by column.

    `stride` bytes of the first record; of each column, how many bytes each difference takes; the first bytes of all differences of the
    first column, their second bytes, …; the other columns; what lies behind the last whole record.
    """
    count, step = len(data) // stride, stride // 8
    widths, planes = np.zeros(step, np.uint8), []
    for number, column in enumerate(data[: count * stride].view("<i8").reshape(count, step).T):
        steps = column[1:] - column[:-1]
        if not steps.any():
            continue
        places = ((steps << 1) ^ (steps >> 63)).view(
            "<u8"
        )  # small ones in either direction are small numbers
        widths[number] = (int(places.max()).bit_length() + 7) // 8
        planes += list(places.view(np.uint8).reshape(-1, 8).T[: widths[number]])
    return np.concatenate([data[:stride], widths, *planes, data[count * stride :]])


def _rows(body: npt.NDArray[np.uint8], size: int, stride: int) -> npt.NDArray[np.uint8]:
    """Undo `_columns`; `size` bytes come out. ValueError if the body cannot have that size."""
    count, step = size // stride, stride // 8
    data = np.empty(size, np.uint8)
    at = stride + step
    rows = data[: count * stride].view("<i8").reshape(count, step)
    rows[:1] = body[:stride].view("<i8")
    # Each column holds the differences from row to row, as unsigned numbers of `width` bytes,
    # stored byte by byte: first all lowest bytes. Zigzag made small negative steps small: 0, -1, 1,
    # -2 are 0, 1, 2, 3. Undone: (u >> 1) ^ -(u & 1). The running sum over the rows restores the
    # values.
    for number, width in enumerate(body[stride:at].tolist()):
        places = np.zeros((count - 1, 8), np.uint8)
        places[:, :width] = body[at : at + width * (count - 1)].reshape(width, count - 1).T
        at += width * (count - 1)
        steps = places.view("<u8").reshape(-1)
        rows[1:, number] = (steps >> np.uint64(1)).view("<i8") ^ -(steps & np.uint64(1)).view("<i8")
    np.cumsum(rows, axis=0, out=rows)
    data[count * stride :] = body[at:]
    return data
