"""Numbers and paths as people read them: `12.3 ms`, `1.5 MiB`, `3 ranges`, `run.warplens`."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

from warplens.model.words import counted, duration, size

__all__ = ["counted", "duration", "short_path", "signal_name", "size"]


def short_path(path: Path) -> str:
    """Return `path` for a shell, relative to where we are if that is shorter."""
    text = str(path)
    try:
        relative = os.path.relpath(text)
    except (OSError, ValueError):
        relative = text
    return shlex.quote(min(text, relative, key=len))


def signal_name(number: int) -> str:
    """Return the name of a signal, as `SIGTERM`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
