"""Converts values of a report to JSON: numbers, texts of bounded length, true, false and null."""

from __future__ import annotations

import json
import math
from typing import Any

from warplens.viewer import limits

_WHOLE = 1 << 53  # JavaScript's numbers are exact up to here


def encoded(answer: Any) -> bytes:
    """Return an answer as JSON in ASCII.

    All characters of a name, lone surrogates included, arrive unchanged.
    """
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii")


def cut(text: str, most: int = limits.CELL) -> str:
    """Return a text, the end replaced by `…` where it is longer than `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(value: Any, most: int = limits.CELL) -> str | int | float | bool | None:
    """Return a value of a cell.

    Whole numbers that JavaScript cannot hold, and what JSON has no word for, are texts.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_WHOLE <= value <= _WHOLE else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, (bytes, bytearray)):
        return cut("0x" + bytes(value[: most // 2]).hex(), most)
    return cut(str(value), most)


def number(value: float) -> float | None:
    """Return a number, or null for one that JSON cannot hold."""
    return value if math.isfinite(value) else None


def tree(value: Any, depth: int = 8, items: int = 1_000) -> Any:
    """Return nested values as JSON holds them.

    At most `depth` levels and `items` of a list or structure.
    """
    if isinstance(value, dict):
        if depth == 0:
            return "…"
        kept = list(value.items())[:items]
        return {cut(str(key), limits.CELL): tree(item, depth - 1, items) for key, item in kept}
    if isinstance(value, (list, tuple)):
        return "…" if depth == 0 else [tree(item, depth - 1, items) for item in value[:items]]
    return plain(value, limits.TEXT)
