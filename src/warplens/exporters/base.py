"""The contract of an exporter: one file in `formats`, one function, one file written.

An exporter is `exporters/formats/<name>.py` with

    SUFFIX: str                 what its files are called, with the dot
    LOSES: tuple[Loss, ...]     what a report holds and the format cannot, in a few words each, and which tables hold it
    def write(report: Report, out: Path, *, opts...) -> None

`write` streams: memory does not grow with the report. Times are not rounded unless LOSES says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from warplens.report import Report


class Write(Protocol):
    """The type of `write` in each unit."""

    def __call__(self, report: Report, out: Path, **options: Any) -> None:
        """Write the report to the file `out`, replacing it. Raises OSError."""
        ...
