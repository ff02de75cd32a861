"""Reads the page headers of a Parquet file, with the unpacked sizes that a reader would allocate.

Headers are structures of Thrift's compact protocol. Of each, two numbers matter; the rest is passed over to find where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_UNPACKED, _PACKED = 2, 3  # fields of PageHeader: bytes of the page, as it will be and as it is
_DEEPEST = 8


class Damaged(Exception):
    """What should be a header is none."""


@dataclass
class _Cursor:
    data: memoryview
    at: int

    def byte(self) -> int:
        if not 0 <= self.at < len(self.data):
            raise Damaged("it ends within a header")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Damaged("a number in a header has no end")

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)


def unpacked(data: memoryview, begin: int, end: int) -> Iterator[int]:
    """Yield the unpacked size of each page between two places of a file, in bytes. Raises Damaged."""
    cursor = _Cursor(data, begin)
    while cursor.at < end:
        sizes = _header(cursor)
        if min(sizes.values(), default=-1) < 0 or len(sizes) < 2:
            raise Damaged("a page has no size")
        yield sizes[_UNPACKED]
        cursor.at += sizes[_PACKED]


def _header(cursor: _Cursor) -> dict[int, int]:
    """Return the two sizes in the header of a page; the cursor is behind it then."""
    fields: dict[int, int] = {}
    for number, kind in _fields(cursor):
        if kind == _I32 and number in (_UNPACKED, _PACKED):
            fields[number] = cursor.number()
        else:
            _pass(cursor, kind, 0)
    return fields


def _fields(cursor: _Cursor) -> Iterator[tuple[int, int]]:
    number = 0
    while kind := cursor.byte():
        step = kind >> 4
        number = number + step if step else cursor.number()
        yield number, kind & 0x0F


def _pass(cursor: _Cursor, kind: int, depth: int) -> None:
    """Pass over a value."""
    if depth > _DEEPEST:
        raise Damaged("a header is nested too deeply")
    if kind in (_TRUE, _FALSE):
        return
    if kind in (_I16, _I32, _I64):
        cursor.varint()
    elif kind == _STRUCT:
        for _, inner in _fields(cursor):
            _pass(cursor, inner, depth + 1)
    elif kind in (_BYTE, _DOUBLE, _BINARY):
        size = {_BYTE: 1, _DOUBLE: 8}.get(kind) or cursor.varint()
        cursor.at += size
    else:  # lists, sets and maps: a header of a page has none
        raise Damaged("a header has an impossible value")
