"""Formats payloads as short text."""

from __future__ import annotations

import json
from typing import Any

_ITEMS = 24  # of an array or structure that a text shows
_BYTES = 32


def text(value: Any) -> str:
    """Write a payload for reading: `{batch: 3, loss: 0.25}`, `[1, 2, 3]`, `0x0a0b`.

    Long ones say how much is left out.
    """
    if isinstance(value, str):
        return value
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + _some([f"{key}: {_text(item)}" for key, item in list(value.items())[:_ITEMS]], len(value))
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + _some([_text(item) for item in value[:_ITEMS]], len(value)) + "]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        return f"0x{raw[:_BYTES].hex()}" + (f"… ({len(raw)} bytes)" if len(raw) > _BYTES else "")
    if isinstance(value, float):
        return f"{value:.12g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, bool, type(None))) else str(value)


def _some(items: list[str], number: int) -> str:
    return ", ".join([*items, *([f"… {number - len(items)} more"] if number > len(items) else [])])
