"""C++ names as people write them."""

from __future__ import annotations

import numpy as np

from warplens.native.library import call

LONGEST_NAME = 8192  # bytes, mangled or not
LINE = 120  # characters
_OPERATORS = (
    "operator()",
    "operator->",
    "operator<<",
    "operator<=",
    "operator<",
    "operator>>",
    "operator>=",
    "operator>",
    "->",
)


def demangle(name: str) -> str | None:
    """Return a C++ name as people write it, cut where it gets too long; None if it is no mangled name, or too long a one."""
    raw = name.encode("utf-8", errors="replace")
    if not raw.startswith(b"_Z") or len(raw) > LONGEST_NAME or b"\0" in raw:
        return None
    out = np.empty(LONGEST_NAME, np.uint8)
    size = call("demangle_name", raw + b"\0", out)
    return out[:size].tobytes().decode("utf-8", errors="replace") if size else None


def shortened(name: str) -> str:
    """Return a C++ name on a line: where it is longer, without what stands in its inner brackets, outer ones last, `…` in its place."""
    for depth in (3, 2, 1):
        if len(name) <= LINE:
            break
        name = _without(name, depth)
    return name


def _without(name: str, depth: int) -> str:
    """`name` without what `depth` pairs of brackets are around; `->`, `<<` and operators that are called so count as text."""
    out: list[str] = []
    level = 0
    at = 0
    while at < len(name):
        operator = next((one for one in _OPERATORS if name.startswith(one, at)), None)
        piece = operator or name[at]
        opens, closes = piece in ("<", "("), piece in (">", ")")
        level -= closes and level > 0
        if level < depth:
            out.append(piece)
        level += opens
        if opens and level == depth and name[at + 1 : at + 2] not in (">", ")"):
            out.append("…")
        at += len(piece)
    return "".join(out)
