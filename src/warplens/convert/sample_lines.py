"""Reads the files that `recording/sample_file.py` writes: a head in JSON, then samples, one a line.

Nothing in them is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from warplens.handover import untrusted
from warplens.spool.notes import Note

_LONGEST = 1 << 20  # bytes of a line
Sample = TypeVar("Sample")


class SampleLines:
    """The file at `path`; there may be none.

    `damaged` counts lines that do not parse, while they are read.
    """

    def __init__(self, path: Path) -> None:
        self.damaged = 0
        self._path = path

    def read(self, head: Callable[[Any], bool], sample: Callable[[Any], Sample | None]) -> Iterator[Sample]:
        """Yield the result of `sample` for each line's JSON; None: the line is damaged.

        Nothing where `head` refuses the first line's.
        """
        try:
            with untrusted.lines(self._path, _LONGEST) as lines:
                first = next(lines, b"")
                if not head(_json(first)):
                    self.damaged += bool(first)
                    return
                for line in lines:
                    if not line.endswith(b"\n"):
                        continue  # being written, or cut off
                    parsed = sample(_json(line))
                    if parsed is None:
                        self.damaged += 1
                    else:
                        yield parsed
        except OSError:
            return

    def notes(self, code: str, what: str) -> list[Note]:
        """Return a note on the damaged lines, none where all are well."""
        return (
            [Note("warning", code, "report", message=f"{what} are damaged and left out", count=self.damaged)]
            if self.damaged
            else []
        )


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
