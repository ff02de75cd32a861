"""Tells a Chrome trace by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from warplens.importers.kineto.pieces import head

_FIRST = 1 << 16
_MORE = 1 << 24  # lists of process groups with all their ranks may come before the events
_OWN = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
)
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_EVENT = re.compile(rb'\{[^{}]*"ph"\s*:\s*"')


def is_trace(path: Path) -> bool:
    """Say whether the text begins like a trace. Raises OSError."""
    start = head(path, _FIRST).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return bool(_EVENT.search(start))
    if not start.startswith(b"{"):
        return False
    if _EVENTS.search(start) or len(_OWN.findall(start)) > 1:
        return True
    return len(start) >= _FIRST // 2 and bool(_EVENTS.search(head(path, _MORE)))


def traces(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are traces, by name and content.

    The reader reports unreadable ones. Raises OSError.
    """
    for path in sorted(folder.iterdir()):
        if (
            path.name.endswith((".json", ".json.gz", ".gz"))
            and path.is_file()
            and (not is_readable(path) or is_trace(path))
        ):
            yield path


def is_readable(path: Path) -> bool:
    """Say whether the file can be opened."""
    try:
        head(path, 1)
    except OSError:
        return False
    return True
