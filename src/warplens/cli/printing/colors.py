"""Decides whether output may have colours and characters beyond ASCII."""

from __future__ import annotations

import os
import sys


def colored(choice: str) -> bool:
    """Say whether to use colours: `choice` is `always`, `never`, or `auto`.

    `auto`: a terminal that has them, and no NO_COLOR.
    """
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def palette() -> int:
    """Return how many colours the terminal says it has: 256 or 2^24."""
    return 1 << 24 if os.environ.get("COLORTERM", "") in ("truecolor", "24bit") else 256


def has_unicode() -> bool:
    """Say whether the standard output takes all characters."""
    return "utf" in (sys.stdout.encoding or "ascii").lower()
