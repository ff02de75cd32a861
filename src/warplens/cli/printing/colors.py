"""Decides whether output may have colours and characters beyond ASCII."""

from __future__ import annotations

import os
import re
import sys

_CODES = {"red": 31, "yellow": 33}
_STYLE = re.compile("\x1b\\[[0-9;]*m")


def styled(text: str, *, bold: bool = False, dim: bool = False, fg: str | None = None) -> str:
    """Return text with the codes of a terminal around it; `fg`: `red` or `yellow`."""
    codes = [code for code, on in ((1, bold), (2, dim)) if on] + ([_CODES[fg]] if fg else [])
    return "".join(f"\x1b[{code}m" for code in codes) + text + "\x1b[0m" if codes else text


def unstyled(text: str) -> str:
    """Return text without such codes."""
    return _STYLE.sub("", text)


def colored(choice: str) -> bool:
    """Say whether to use colours: `choice` is `always`, `never`, or `auto`.

    `auto`: a terminal that has them, and no NO_COLOR.
    """
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def palette() -> int:
    """Return the number of colours of the terminal: 256 or 2^24."""
    return 1 << 24 if os.environ.get("COLORTERM", "") in ("truecolor", "24bit") else 256


def has_unicode() -> bool:
    """Say whether the standard output takes all characters."""
    return "utf" in (sys.stdout.encoding or "ascii").lower()
