"""C++ names as people write them."""

from __future__ import annotations

import numpy as np

from warplens.native.library import call

LONGEST_NAME = 8192  # bytes, mangled or not


def demangle(name: str) -> str | None:
    """Return a C++ name as people write it, cut where it gets too long; None where it is no mangled name, or too long a one."""
    raw = name.encode("utf-8", errors="replace")
    if not raw.startswith(b"_Z") or len(raw) > LONGEST_NAME or b"\0" in raw:
        return None
    out = np.empty(LONGEST_NAME, np.uint8)
    size = call("demangle_name", raw + b"\0", out)
    return out[:size].tobytes().decode("utf-8", errors="replace") if size else None
