"""Decodes extended payloads to Python values, one at a time: any layout, truncated bytes too."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from warplens.spool.payload_schema import (
    BY_ENTRY,
    BY_PAYLOAD,
    FROM_HERE,
    POINTER,
    TERMINATED,
    UNION,
    Element,
    Enumeration,
    Field,
    Scalar,
    Struct,
    Text,
)

_FORMATS = {
    "<i1": "b",
    "<u1": "B",
    "<i2": "h",
    "<u2": "H",
    "<i4": "i",
    "<u4": "I",
    "<i8": "q",
    "<u8": "Q",
    "<f2": "e",
    "<f4": "f",
    "<f8": "d",
}
_MOST_VALUES = 1 << 20
_CHARS = {"char": "utf-8", "char16": "utf-16-le", "char32": "utf-32-le", "wchar": "utf-32-le"}


class TooMuch(Exception):
    """The payload says that it holds more values than anybody could want."""


class Reader:
    """Decodes one payload. `strings` has the texts of registered strings."""

    def __init__(self, data: bytes, strings: Mapping[int, str]) -> None:
        self.data = data
        self._strings = strings
        self._left = _MOST_VALUES
        self._torn = False

    def whole(self, element: Element) -> Any:
        """Return the payload's value: a dict for a structure, a number, a list of them, or a text."""
        if isinstance(element, Struct):
            return self._struct(element, 0)[0]
        if isinstance(element, Text):
            return self._text(element, 0, len(self.data) // element.size)
        count = len(self.data) // element.size
        values = self._many(element, 0, count)
        return values[0] if count == 1 and isinstance(values, list) else values

    def _struct(self, layout: Struct, base: int) -> tuple[Any, int]:
        """Return the fields that are there, and where the structure ends."""
        if layout.kind >= UNION:
            size = layout.size or 0
            return self.data[base : base + size], base + size
        fields: dict[str, Any] = {}
        plain: list[Any] = []
        end = base
        for field in layout.fields:
            if self._torn:  # nobody knows where the rest lies
                fields[field.name] = None
                continue
            at = (
                base + field.offset
                if field.offset is not None
                else base + -(-(end - base) // field.align) * field.align
            )
            value, end = self._field(field, at, plain)
            fields[field.name] = value
            plain.append(value)
        return fields, base + layout.size if layout.size else end

    def _field(self, field: Field, at: int, before: list[Any]) -> tuple[Any, int]:
        end = None
        if field.jump:
            end = at + 8
            place = self._unpack("<u8", 8, at)
            if place is None or (place == 0 and field.jump == POINTER):
                return None, end
            at = place + end if field.jump == FROM_HERE else place
        if at > len(self.data):
            return None, end or at
        value, after = self._value(field, at, before)
        return value, end if end is not None else after

    def _value(self, field: Field, at: int, before: list[Any]) -> tuple[Any, int]:
        element = field.element
        count = field.count if field.count is not None else self._count(field, at, before)
        if isinstance(element, Text):
            size = count * element.size
            return self._text(element, at, count), at + size
        if field.selector >= 0 and isinstance(element, Struct):
            return self._member(
                element, at, before[field.selector] if field.selector < len(before) else None
            ), at + (element.size or 0)
        if field.many:
            if element.size:
                return self._many(element, at, count), at + count * element.size
            values = []
            for _ in range(count):
                value, at = self._one(element, at)
                values.append(value)
            return values, at
        return self._one(element, at)

    def _count(self, field: Field, at: int, before: list[Any]) -> int:
        size = field.element.size or 1
        room = max(len(self.data) - at, 0) // size
        if field.array == BY_PAYLOAD:
            return room
        if field.array == BY_ENTRY:
            lengths = before[field.length] if field.length < len(before) else None
            total = 1
            for length in lengths if isinstance(lengths, list) else [lengths]:
                total *= max(length, 0) if isinstance(length, int) else 0
            self._torn = self._torn or (total > room and field.size is None)
            return min(total, room)
        if field.array != TERMINATED:
            return 1
        for index in range(room):
            if not any(self.data[at + index * size : at + (index + 1) * size]):
                return index + 1 if isinstance(field.element, Text) or not field.jump else index
        return room

    def _member(self, union: Struct, at: int, chosen: Any) -> Any:
        if not isinstance(chosen, int) or not 0 <= chosen < len(union.fields):
            return None
        field = union.fields[chosen]
        return {field.name: self._field(field, at + (field.offset or 0), [])[0]}

    def _many(self, element: Element, at: int, count: int) -> Any:
        """Values of a fixed size behind each other."""
        size = element.size or 1
        count = max(min(count, (len(self.data) - at) // size), 0)
        self._spend(count)
        if isinstance(element, Scalar) and element.names is None:
            name = element.type.name
            if name == "byte":
                return self.data[at : at + count]
            if name in _CHARS:
                return _cut(self.data[at : at + count * size].decode(_CHARS[name], errors="replace"))
            if element.type.format and name not in ("bfloat16", "registered_string"):
                return list(struct.unpack_from(f"<{count}{_FORMATS[element.type.format]}", self.data, at))
        return [self._one(element, at + index * size)[0] for index in range(count)]

    def _one(self, element: Element, at: int) -> tuple[Any, int]:
        self._spend(1)
        if isinstance(element, Struct):
            return self._struct(element, at)
        if isinstance(element, Text):
            return self._text(element, at, 1), at + element.size
        return self._scalar(element, at), at + element.size

    def _scalar(self, scalar: Scalar, at: int) -> Any:
        name = scalar.type.name
        if not scalar.type.format:
            raw = self.data[at : at + scalar.size]
            if len(raw) < scalar.size:
                return None
            return (
                int.from_bytes(raw, "little", signed=name == "int128")
                if name in ("int128", "uint128")
                else raw
            )
        value = self._unpack(scalar.type.format, scalar.size, at)
        return None if value is None else meaning(scalar, value, self._strings)

    def _unpack(self, kind: str, size: int, at: int) -> Any:
        if at < 0 or at + size > len(self.data):
            return None
        return struct.unpack_from("<" + _FORMATS[kind], self.data, at)[0]

    def _text(self, element: Text, at: int, count: int) -> str:
        return _cut(self.data[at : at + count * element.size].decode(element.encoding, errors="replace"))

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise TooMuch


def meaning(scalar: Scalar, value: Any, strings: Mapping[int, str]) -> Any:
    """Return the meaning of a number: a name of an enumeration, a registered string, ….

    Else the number.
    """
    if scalar.names is not None:
        return enumerated(scalar.names, value)
    name = scalar.type.name
    if name == "registered_string":
        return strings.get(value, value)
    if name in _CHARS:
        return (
            chr(value) if value < 0x110000 and not 0xD800 <= value < 0xE000 else "\N{REPLACEMENT CHARACTER}"
        )
    if name == "bfloat16":
        return struct.unpack("<f", struct.pack("<I", value << 16))[0]
    return value


def enumerated(names: Enumeration, value: int) -> Any:
    """Return the name of a value, the names of its bits, or its number.

    True and False if these are the names.
    """
    if is_truth(names):
        return bool(value)
    known = names.values.get(value)
    if known is not None or not names.flags:
        return known if known is not None else str(value)
    left, bits = value, []
    for bit, name in sorted(names.values.items()):
        if bit and bit & value == bit:
            bits.append(name)
            left &= ~bit
    return "|".join([*bits, *([hex(left)] if left or not bits else [])])


def is_truth(names: Enumeration) -> bool:
    """Whether an enumeration is that of the two truths."""
    return {name.lower(): value for value, name in names.values.items()} == {"false": 0, "true": 1}


def _cut(text: str) -> str:
    return text.split("\0", 1)[0]


Decoder = Callable[[bytes], Any]


def decoder(element: Element, strings: Mapping[int, str]) -> Decoder:
    """Return a function from a payload's bytes to its value.

    Bytes that say they hold too much stay bytes.
    """

    def decode(data: bytes) -> Any:
        try:
            return Reader(data, strings).whole(element)
        except TooMuch:
            return data

    return decode
