"""Source lines of addresses, from the line tables that compilers write with -g.

DWARF 2 to 5, section .debug_line.

Only the units that have one of the addresses are decoded: where their sequences begin is searched for, which is fast in files of any size.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from warplens import native
from warplens.arrays import Int64Array
from warplens.convert.symbols.elf import COMPRESSED, Elf

_SET_ADDRESS = re.compile(rb"\x00\x09\x02(.{8})", re.DOTALL)
_MOST = 256 << 20  # bytes of a section that is compressed
# Bytes of line programs of a file: half a second. Programs with most of the requested addresses come first.
_MOST_DECODED = 64 << 20
_DIRECTORY, _PATH = 2, 1  # DW_LNCT
_STRING, _LINE_STRP, _STRP, _UDATA, _DATA1, _DATA2, _DATA4, _DATA8, _DATA16, _BLOCK = (
    0x08,
    0x1F,
    0x0E,
    0x0F,
    0x0B,
    0x05,
    0x06,
    0x07,
    0x1E,
    0x09,
)
_FIXED = {_DATA1: 1, _DATA2: 2, _DATA4: 4, _DATA8: 8, _DATA16: 16}
Line = tuple[str, int]


class _Broken(Exception):
    """The table does not hold what it should."""


@dataclass
class _Reader:
    """Numbers and texts of a section, one after the other."""

    data: bytes
    at: int
    end: int

    def number(self, size: int) -> int:
        self.skip(size)
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def skip(self, size: int) -> None:
        if size < 0 or self.at + size > self.end:
            raise _Broken
        self.at += size

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 70:
                raise _Broken

    def text(self) -> str:
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            raise _Broken
        value = self.data[self.at : stop].decode("utf-8", errors="replace")
        self.at = stop + 1
        return value


@dataclass
class _Unit:
    """The header of a line program; `program` is where it lies."""

    version: int
    address_size: int
    step: int
    line_base: int
    line_range: int
    opcode_base: int
    lengths: list[int]
    program: tuple[int, int]
    directories: list[str] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)

    def file(self, number: int) -> str | None:
        place = number if self.version >= 5 else number - 1
        if not 0 <= place < len(self.files):
            return None
        name, directory = self.files[place]
        above = directory if self.version >= 5 else directory - 1
        path = (
            name
            if name.startswith("/") or not 0 <= above < len(self.directories)
            else f"{self.directories[above]}/{name}"
        )
        base = self.directories[0] if self.version >= 5 and self.directories else ""
        return path if path.startswith("/") or not base else f"{base}/{path}"


class Lines:
    """The line tables of a file."""

    def __init__(self, file: Elf) -> None:
        self._data = _contents(file, ".debug_line")
        self._bytes = np.frombuffer(self._data, np.uint8)
        self._texts = {_LINE_STRP: _contents(file, ".debug_line_str"), _STRP: b""}
        self._file = file

    def find(self, addresses: Int64Array) -> dict[int, Line]:
        """Return file and line of those addresses (rising) for which they are known."""
        if not self._data or not len(addresses):
            return {}
        starts = [
            (int.from_bytes(match[1], "little"), match.start()) for match in _SET_ADDRESS.finditer(self._data)
        ]
        starts = sorted(start for start in starts if 0 < start[0] < 1 << 62)
        if not starts:
            return {}
        begins = np.array([begin for begin, _ in starts], np.int64)
        place = np.searchsorted(begins, addresses, side="right") - 1
        wanted = np.array(sorted({starts[at][1] for at in place[place >= 0].tolist()}), np.int64)
        line_of: dict[int, Line] = {}
        begins, ends = np.array([*self._units()], np.int64).reshape(-1, 2).T
        many = np.searchsorted(wanted, ends) - np.searchsorted(wanted, begins)
        some = np.flatnonzero(many)
        decoded = 0
        for at in some[np.argsort(-many[some], kind="stable")].tolist():
            begin, end = int(begins[at]), int(ends[at])
            decoded += end - begin
            if decoded > _MOST_DECODED:
                break
            try:
                self._decode(begin, end, addresses, line_of=line_of)
            except _Broken:
                continue
        return line_of

    def _units(self) -> Iterator[tuple[int, int]]:
        at = 0
        while at + 4 <= len(self._data):
            length = int.from_bytes(self._data[at : at + 4], "little")
            if length >= 0xFFFFFFF0 or at + 4 + length > len(self._data):  # of 64 bits, or damage
                return
            yield at, at + 4 + length
            at += 4 + length

    def _decode(self, begin: int, end: int, addresses: Int64Array, line_of: dict[int, Line]) -> None:
        unit = self._header(begin, end)
        header = (
            *unit.program,
            unit.step,
            unit.line_base,
            unit.line_range,
            unit.opcode_base,
            0 if unit.version >= 5 else 1,
            len(unit.files),
        )
        number, line = np.zeros(len(addresses), np.int64), np.zeros(len(addresses), np.int64)
        native.call(
            "run_line_program",
            self._bytes,
            np.array(header, np.int64),
            np.array(unit.lengths, np.uint8),
            addresses,
            number,
            line,
        )
        files: dict[int, str | None] = {}
        for place in np.flatnonzero(line).tolist():
            of = int(number[place])
            if of not in files:
                files[of] = unit.file(of)
            if name := files[of]:
                line_of.setdefault(int(addresses[place]), (name, int(line[place])))

    def _header(self, begin: int, end: int) -> _Unit:
        reader = _Reader(self._data, begin + 4, end)
        version = reader.number(2)
        if not 2 <= version <= 5:
            raise _Broken
        address_size = 8
        if version >= 5:
            address_size = reader.number(1)
            reader.skip(1)
        length = reader.number(4)
        program = (reader.at + length, end)
        step = reader.number(1)
        reader.skip(1 + (version >= 4))
        line_base = reader.number(1)
        line_range, opcode_base = reader.number(1), reader.number(1)
        if not line_range or not opcode_base or program[0] > end or address_size != 8:
            raise _Broken
        lengths = [reader.number(1) for _ in range(opcode_base - 1)]
        unit = _Unit(
            version,
            address_size,
            step,
            line_base=line_base - (line_base > 127) * 256,
            line_range=line_range,
            opcode_base=opcode_base,
            lengths=lengths,
            program=program,
        )
        if version >= 5:
            unit.directories = [name for name, _ in self._entries(reader)]
            unit.files = self._entries(reader)
            return unit
        while name := reader.text():
            unit.directories.append(name)
        while name := reader.text():
            unit.files.append((name, reader.uleb()))
            reader.uleb()
            reader.uleb()
        return unit

    def _entries(self, reader: _Reader) -> list[tuple[str, int]]:
        """Return the names of directories or files, and of files which directory they are in."""
        formats = [(reader.uleb(), reader.uleb()) for _ in range(reader.number(1))]
        entries = []
        for _ in range(reader.uleb()):
            name, directory, begin = "", 0, reader.at
            for content, form in formats:
                value = self._value(reader, form)
                if content == _PATH and isinstance(value, str):
                    name = value
                elif content == _DIRECTORY and isinstance(value, int):
                    directory = value
            if reader.at == begin:
                raise _Broken  # entries of nothing, as many as one likes
            entries.append((name, directory))
        return entries

    def _value(self, reader: _Reader, form: int) -> str | int | None:
        if form == _STRING:
            return reader.text()
        if form in self._texts:
            at = reader.number(4)
            if form == _STRP and not self._texts[form]:
                self._texts[form] = _contents(self._file, ".debug_str")
            texts = self._texts[form]
            return _Reader(texts, at, len(texts)).text() if at < len(texts) else ""
        if form == _UDATA:
            return reader.uleb()
        if form == _BLOCK:
            reader.skip(reader.uleb())
            return None
        if form not in _FIXED:
            raise _Broken
        return reader.number(_FIXED[form])


def _contents(file: Elf, name: str) -> bytes:
    """Return a section, uncompressed; nothing where it is not there or cannot be read."""
    section = file.section(name)
    if section is None or section.size > _MOST:
        return b""
    data = bytes(file.contents(section))
    if not section.flags & COMPRESSED:
        return data
    if int.from_bytes(data[:4], "little") != 1:  # zlib; what else there is needs a library
        return b""
    try:
        return zlib.decompressobj().decompress(data[24:], _MOST)
    except zlib.error:
        return b""
