"""Reads files of `marshal` as far as profiles need it: dicts, tuples, texts and numbers.

Whatever else is in a file is refused.

Python's own `marshal.load` may crash on a file that somebody made for that.
"""

from __future__ import annotations

import struct
from typing import Any

from warplens.errors import ReportError

_REFERENCE = 0x80  # in the byte of a type: later values may point to this one
_DEEPEST = 8
_LONGEST_KEY = 3  # so that a file cannot make the hash of a key expensive
_LONGEST_INT = 8  # digits of 15 bits
_UNFINISHED = object()
_END = object()  # of a dict
_CONSTANTS: dict[int, Any] = {ord("N"): None, ord("T"): True, ord("F"): False, ord("0"): _END}
_SHORT = {ord("z"): "ascii", ord("Z"): "ascii"}  # text with its length in a byte
_LONG = {ord("a"): "ascii", ord("A"): "ascii", ord("u"): "utf-8", ord("t"): "utf-8"}  # in four


class NotMarshalled(ReportError):
    """A file holds something else. `end`: only because it ends too early."""

    def __init__(self, what: str, at: int, *, end: bool = False) -> None:
        """`at`: the byte that is wrong."""
        super().__init__(f"{what} at byte {at:,}")
        self.end = end


class Marshalled:
    """A value in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._known: list[Any] = []

    def whole(self) -> Any:
        """Read the only value. Raises NotMarshalled."""
        value = self.value()
        if self._at != len(self._data):
            raise NotMarshalled("more than one value", self._at)
        return value

    def opened(self) -> None:
        """Go into a dict, whose first key is read next. Raises NotMarshalled."""
        if self._take(1)[0] | _REFERENCE != ord("{") | _REFERENCE:
            raise NotMarshalled("no dict", 0)
        self._known.append(_UNFINISHED)

    def value(self, depth: int = 0) -> Any:
        """Read a value, which other values are around. Raises NotMarshalled."""
        value = self._any(depth)
        if value is _END:
            raise NotMarshalled("no value", self._at - 1)
        return value

    def _any(self, depth: int) -> Any:
        at = self._at
        if depth > _DEEPEST:
            raise NotMarshalled(f"more than {_DEEPEST} values in each other", at)
        kind = self._take(1)[0]
        kept, kind = kind & _REFERENCE, kind & ~_REFERENCE
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == ord("r"):
            return self._referred(at)
        place = len(self._known)
        if kept:
            self._known.append(_UNFINISHED)
        value: Any
        if kind == ord("{"):
            value = self._dict(depth)
        elif kind in (ord(")"), ord("(")):
            count = self._take(1)[0] if kind == ord(")") else self._length()
            value = tuple(self.value(depth + 1) for _ in range(count))
        else:
            value = self._scalar(kind, at)
        if kept:
            self._known[place] = value
        return value

    def _scalar(self, kind: int, at: int) -> str | int | float:
        if kind in _SHORT or kind in _LONG:
            length = self._take(1)[0] if kind in _SHORT else self._length()
            return self._take(length).decode(_SHORT.get(kind) or _LONG[kind], "replace")
        if kind == ord("i"):
            return int.from_bytes(self._take(4), "little", signed=True)
        if kind == ord("g"):
            return float(struct.unpack("<d", self._take(8))[0])
        if kind == ord("l"):
            digits = int.from_bytes(self._take(4), "little", signed=True)
            if abs(digits) > _LONGEST_INT:
                raise NotMarshalled("a number that is too large", at)
            size = sum(int.from_bytes(self._take(2), "little") << 15 * place for place in range(abs(digits)))
            return size if digits >= 0 else -size
        raise NotMarshalled(f"a value of the type {chr(kind)!r}, which profiles do not have,", at)

    def _dict(self, depth: int) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        while (key := self._any(depth + 1)) is not _END:
            if (
                not isinstance(key, tuple)
                or len(key) > _LONGEST_KEY
                or not all(isinstance(part, str | int) for part in key)
            ):
                raise NotMarshalled("a key that is not a function", self._at)
            entries[key] = self.value(depth + 1)
        return entries

    def _referred(self, at: int) -> Any:
        number = self._length()
        if number >= len(self._known) or self._known[number] is _UNFINISHED:
            raise NotMarshalled("a reference to nothing", at)
        return self._known[number]

    def _length(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _take(self, length: int) -> bytes:
        data = self._data[self._at : self._at + length]
        if len(data) < length:
            raise NotMarshalled("a value that is cut off", self._at, end=True)
        self._at += length
        return data
