"""The few pieces of the protobuf wire format that an encoder needs."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """Encode an integer; negative ones as 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode an integer, bool or enum field."""
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    """Encode a string, bytes or message field."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def message(field: int, *parts: bytes) -> bytes:
    """Encode a message field from its encoded fields."""
    return text(field, b"".join(parts))
