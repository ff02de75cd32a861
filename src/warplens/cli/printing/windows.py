"""The windows of the capture in words.

A report that was recorded from begin to end has none worth a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warplens.cli.printing.words import counted, duration

_MOST = 5
_OPENED = {
    "start": "from the start",
    "time": "after the delay",
    "nvtx": "by an NVTX range",
    "cudaProfilerApi": "by cudaProfilerStart",
    "command": "by command",
    "keep": "going on",
}
_CLOSED = {
    "time": "its duration",
    "nvtx": "the end of that range",
    "cudaProfilerApi": "cudaProfilerStop",
    "command": "a command",
    "max-size": "the spool was full",
    "keep": "the last seconds were kept",
    "end": "the end of the run",
    None: "now",
}


def worth_telling(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether the rows of `capture_windows` of one part hold more than one window from begin to end."""
    return [(row["opened_by"], row["closed_by"]) for row in rows] not in (
        [("start", "end")],
        [("start", None)],
        [],
    )


def lines(rows: Sequence[Mapping[str, Any]], origin: int, most: int = _MOST) -> Iterator[str]:
    """Yield a line for each window, beginning with its number.

    `origin`: ns, where the report begins.
    """
    before: Mapping[str, Any] = {}
    for row in rows[: most if len(rows) > most + 1 else None]:
        yield f"{row['number']}: {duration(row['end'] - row['start'])} at {duration(max(0, row['start'] - origin))} ({why(row, before)})"
        before = row
    if len(rows) > most + 1:
        yield f"… and {counted(len(rows) - most, 'window')} more, up to {rows[-1]['number']}"


def why(row: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Return the events that opened and closed a window, in words.

    `before`: the one before it, which a flight recorder may have saved and gone on.
    """
    went_on = before.get("closed_by") == "keep" and row["opened_by"] in (
        "start",
        "time",
    )  # which happens once
    opened = _OPENED["keep" if went_on else row["opened_by"]] if row["opened_by"] in _OPENED else ""
    closed = _CLOSED.get(row["closed_by"], "")
    return ", ".join(text for text in (opened, closed and f"until {closed}") if text)
