"""The few pieces of the protobuf wire format that the rare packets of a trace need.

The frequent ones are read natively.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | bytes


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message: number, and an integer or bytes.

    Raises ValueError if it is no message.
    """
    at, size = 0, len(data)
    while at < size:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            number, at = _varint(data, at)
            yield tag >> 3, number
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > size:
                raise ValueError("a field is cut short")
            yield tag >> 3, data[at : at + length]
            at += length
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            if at + width > size:
                raise ValueError("a field is cut short")
            yield tag >> 3, int.from_bytes(data[at : at + width], "little")
            at += width
        else:
            raise ValueError(f"no field has the type {kind}")


def message(data: bytes) -> dict[int, list[Value]]:
    """Return the values of a message by field. Raises ValueError."""
    values: dict[int, list[Value]] = {}
    for number, value in fields(data):
        values.setdefault(number, []).append(value)
    return values


def whole(message: dict[int, list[Value]], field: int, default: int = 0) -> int:
    """Return the last value of an integer field."""
    value = message.get(field, [default])[-1]
    return value if isinstance(value, int) else default


def signed(value: int) -> int:
    """Return an integer of 64 bits with its sign."""
    return value - (1 << 64) if value >> 63 else value


def real(value: int) -> float:
    """Return the double whose bits are an integer's."""
    return float(struct.unpack("<d", value.to_bytes(8, "little"))[0])


def text(message: dict[int, list[Value]], field: int) -> str | None:
    """Return the last value of a text field; None if it has none."""
    value = message.get(field, [None])[-1]
    return value.decode(errors="replace") if isinstance(value, bytes) else None


def texts(message: dict[int, list[Value]], field: int) -> list[str]:
    """Return all values of a text field."""
    return [value.decode(errors="replace") for value in message.get(field, ()) if isinstance(value, bytes)]


def inner(message: dict[int, list[Value]], field: int) -> list[bytes]:
    """Return all messages of a field, encoded."""
    return [value for value in message.get(field, ()) if isinstance(value, bytes)]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
    raise ValueError("a number is cut short")
