"""Text and numbers as a page shows them.

Whatever comes from a report goes through `safe`: names may be hostile.
"""

from __future__ import annotations

import html
import math
import unicodedata
from typing import Any

_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
# Characters that turn the direction of text, or stand for nothing: they would show a name as what it is not.
_HIDDEN = frozenset(
    "\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)


def safe(value: object) -> str:
    """Return a text for the page: markup escaped, in one line, what cannot be seen as an escape."""
    text = str(value)
    if not text.isprintable() or not _HIDDEN.isdisjoint(text):
        text = "".join(_shown(c) if not c.isprintable() or c in _HIDDEN else c for c in text)
    return html.escape(text, quote=True)


def duration(ns: float) -> str:
    """Return a time as people read it: `1.23 ms`."""
    for scale, unit in _UNITS:
        if abs(ns) >= scale:
            return f"{_three(ns / scale)} {unit}"
    return f"{_three(ns)} ns"


def size(count: float) -> str:
    """Return bytes as people read them."""
    for scale, unit in _SIZES:
        if abs(count) >= scale:
            return f"{_three(count / scale)} {unit}"
    return f"{_three(count)} B"


def amount(value: float, unit: str) -> str:
    """Return a number with its unit; `ns` and `bytes` as people read them."""
    if unit in ("ns", "bytes"):
        return duration(value) if unit == "ns" else size(value)
    return f"{_three(value)} {unit}".rstrip()


def scale_of(largest: float) -> tuple[int, str]:
    """Return what to divide a column of ns by, and the unit that it is then in."""
    return next(((scale, unit) for scale, unit in _UNITS if largest >= scale), (1, "ns"))


def cell(value: Any, places: int | None = None) -> str:
    """Return a value for a cell of a table, escaped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if places is None else f"{value:,.{places}f}"
    if isinstance(value, float):
        if not math.isfinite(value):
            return safe(value)
        return f"{value:,.{1 if places is None else places}f}"
    return safe(value)


def _three(value: float) -> str:
    """Return a number with three digits that matter."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(places, 3)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shown(character: str) -> str:
    return (
        " " if unicodedata.category(character) == "Zs" else character.encode("unicode_escape").decode("ascii")
    )
