"""Notes about a recording: one per thing lost, guessed or repaired."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A row of the table `diagnostics` before it has keys."""

    severity: str
    code: str
    source: str
    message: str
    count: int | None = None
    time: int | None = None
