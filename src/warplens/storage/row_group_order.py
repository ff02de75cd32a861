"""Reorders the row groups of a Parquet file that was just written.

Only its footer holds their order.

A writer appends. What ends late is written late, while others have gone on; readers get it where it belongs all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from warplens.errors import ReportError

_MAGIC = b"PAR1"
_ROW_GROUPS, _ORDINAL = 4, 7  # fields of FileMetaData and RowGroup in parquet.thrift
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
)


def reorder(file: BinaryIO, order: Sequence[int]) -> None:
    """Let the row group number `order[k]` of an open file be its k-th.

    Raises ReportError if the footer is not as expected.
    """
    end = file.seek(0, 2)
    file.seek(end - 8)
    tail = file.read(8)
    size = int.from_bytes(tail[:4], "little")
    begin = end - 8 - size
    file.seek(max(begin, 0))
    footer = file.read(size)
    if tail[4:] != _MAGIC or begin < 4 or len(footer) != size:
        raise ReportError(f"{Path(str(file.name))} does not end like a Parquet file")
    changed = _reordered(footer, order)
    if len(changed) != size:
        raise ReportError(f"{Path(str(file.name))}: the footer of the Parquet file cannot be put in order")
    file.seek(begin)
    file.write(changed)
    file.flush()


def _reordered(footer: bytes, order: Sequence[int]) -> bytes:
    cursor = _GroupCursor(footer)
    for field, kind in cursor.fields():
        if field != _ROW_GROUPS or kind != _LIST:
            cursor.skip(kind)
            continue
        count, _ = cursor.list_head()
        first = cursor.at
        groups = [cursor.row_group() for _ in range(count)]
        if sorted(order) != list(range(count)):
            raise ReportError(f"the file has {count} row groups, not {len(order)}")
        moved = [_numbered(groups[old], new) for new, old in enumerate(order)]
        return b"".join((footer[:first], *moved, footer[cursor.at :]))
    raise ReportError("the footer of the Parquet file names no row groups")


def _numbered(group: tuple[bytes, int, int], number: int) -> bytes:
    """Return a row group with its new number, if it has one: bytes, begin and end of the number in them."""
    text, begin, end = group
    return text if begin == end else text[:begin] + _varint(2 * number) + text[end:]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _GroupCursor:
    """Walks through Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads its value."""
        last = 0
        while (head := self._byte()) != _STOP:
            kind, step = head & 15, head >> 4
            last = last + step if step else self._zigzag()
            yield last, kind

    def row_group(self) -> tuple[bytes, int, int]:
        """Return the bytes of a struct, and where in them its ordinal begins and ends."""
        begin = self.at
        number = (0, 0)
        for field, kind in self.fields():
            value = self.at
            self.skip(kind)
            if field == _ORDINAL and kind == _I16:
                number = value - begin, self.at - begin
        return self._data[begin : self.at], *number

    def list_head(self) -> tuple[int, int]:
        """Return how many items follow, and their type."""
        head = self._byte()
        count = head >> 4
        return (self._varint() if count == 15 else count), head & 15

    def skip(self, kind: int) -> None:
        """Step over a value."""
        if kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            count, inner = self.list_head()
            for _ in range(count):
                self._skip_item(inner)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip_item(kinds >> 4)
                self._skip_item(kinds & 15)
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BYTE:
            self.at += 1
        elif kind not in (_TRUE, _FALSE):
            raise ReportError(f"the footer of the Parquet file holds a value of the unknown type {kind}")

    def _skip_item(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):  # in a list, a bool has a byte
            self.at += 1
        else:
            self.skip(kind)

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
