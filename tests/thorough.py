"""How much of what has no end is tried: a part of it each time, all of it with WARPLINE_THOROUGH=1 (`make test-all`)."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("WARPLINE_THOROUGH", "0") not in ("", "0")


def examples(number: int) -> int:
    """Return how many examples of `number` are tried: all, or a fifth, of few a few."""
    return number if THOROUGH else max(min(number, 8), number // 5)
