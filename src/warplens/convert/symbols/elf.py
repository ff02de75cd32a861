"""Reads sections, build id and symbols of ELF files; reads only the requested parts."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.handover import untrusted

_HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_MOST_SECTIONS = 1 << 16
_LONGEST_NAME = 1 << 15
_NOTE, _PT_NOTE = 7, 4
_GNU_BUILD_ID = 3
SYMTAB, DYNSYM, RELA, NOBITS = 2, 11, 4, 8
COMPRESSED = 0x800
X86_64, AARCH64 = 62, 183
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])


class BadElf(Exception):
    """The file is no ELF file that can be read."""


@dataclass(frozen=True)
class Section:
    """A part of the file; `address` is where it lies in memory."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    alignment: int


class Elf:
    """An ELF file of 64 bits, little-endian.

    Raises BadElf, or OSError if it cannot be opened.
    """

    def __init__(self, source: Path | bytes) -> None:
        self._data: bytes | mmap.mmap = source if isinstance(source, bytes) else _mapped(source)
        if len(self._data) < _HEADER.size:
            raise BadElf("it is too short")
        (
            magic,
            bits,
            order,
            _,
            _,
            self.machine,
            _,
            _,
            segments,
            sections,
            _,
            _,
            _,
            count,
            size,
            number,
            names,
        ) = _HEADER.unpack_from(self._data)
        if magic != b"\x7fELF" or (bits, order) != (2, 1):
            raise BadElf("it is not a 64-bit little-endian ELF file")
        self._segments = (segments, count) if segments else (0, 0)
        self._sections_at = (sections, number, names) if size == _SECTION.size else (0, 0, 0)

    def close(self) -> None:
        """Unmap it, once nothing that was taken from it is used."""
        try:
            if isinstance(self._data, mmap.mmap):
                self._data.close()
        except BufferError:
            pass  # an array still looks at it: the mapping goes with it

    @cached_property
    def sections(self) -> list[Section]:
        """All sections that lie within the file, by number; others have a size of 0."""
        offset, count, names = self._sections_at
        if (
            not offset
            or not count
            or offset + count * _SECTION.size > len(self._data)
            or count > _MOST_SECTIONS
        ):
            return []
        raw = [_SECTION.unpack_from(self._data, offset + number * _SECTION.size) for number in range(count)]
        texts = raw[names][4:6] if names < count else (0, 0)
        segments = []
        for name, kind, flags, address, at, size, link, _, alignment, _ in raw:
            inside = kind != NOBITS and at <= len(self._data) and size <= len(self._data) - at
            text = self._text(texts[0] + name, texts[0] + texts[1])
            segments.append(
                Section(
                    text,
                    kind,
                    flags,
                    address=address,
                    offset=at,
                    size=size if inside else 0,
                    link=link,
                    alignment=alignment,
                )
            )
        return segments

    def section(self, name: str) -> Section | None:
        """Return the section called `name`, None if there is none with anything in it."""
        return next((section for section in self.sections if section.name == name and section.size), None)

    def contents(self, section: Section) -> memoryview:
        """Return the bytes of a section, as they are in the file."""
        return memoryview(self._data)[section.offset : section.offset + section.size]

    def rows(self, section: Section, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return a section as a table."""
        count = section.size // kind.itemsize
        return np.frombuffer(self._data, kind, count, section.offset) if count else np.empty(0, kind)

    def name(self, section: Section, at: int) -> str:
        """Return a text of a section of texts."""
        return self._text(section.offset + at, section.offset + section.size)

    @cached_property
    def build_id(self) -> str | None:
        """Its build id, in lower-case hexadecimal digits."""
        for begin, end in self._notes():
            at = begin
            while at + 12 <= end:
                name, size, kind = struct.unpack_from("<III", self._data, at)
                contents = at + 12 + (name + 3) // 4 * 4
                if (
                    kind == _GNU_BUILD_ID
                    and bytes(self._data[at + 12 : at + 16]) == b"GNU\0"
                    and contents + size <= end
                ):
                    return bytes(self._data[contents : contents + size]).hex()
                at = contents + (size + 3) // 4 * 4
        return None

    def _notes(self) -> Iterator[tuple[int, int]]:
        offset, count = self._segments
        for number in range(count):
            if offset + (number + 1) * _SEGMENT.size > len(self._data):
                break
            kind, _, at, _, _, size, _, _ = _SEGMENT.unpack_from(self._data, offset + number * _SEGMENT.size)
            if kind == _PT_NOTE and at + size <= len(self._data):
                yield at, at + size
        for section in self.sections:
            if section.kind == _NOTE:
                yield section.offset, section.offset + section.size

    def _text(self, begin: int, end: int) -> str:
        end = min(end, begin + _LONGEST_NAME, len(self._data))
        if begin >= end:
            return ""
        stop = self._data.find(b"\0", begin, end)
        return bytes(self._data[begin : end if stop < 0 else stop]).decode("utf-8", errors="replace")


def _mapped(path: Path) -> mmap.mmap:
    try:
        with untrusted.opened(path) as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise BadElf("it is empty") from error
