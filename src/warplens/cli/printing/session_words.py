"""Formats the answers of running sessions for the terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from warplens.cli.printing.words import counted, duration, short_path

_PHASES = {
    "waiting": "waiting for its start",
    "recording": "recording",
    "paused": "not recording",
    "over": "over",
}


def phase(state: dict[str, Any], now_ns: int | None = None) -> str:
    """Return how a recording stands, e.g. `recording for 3.21 s (window 2)`.

    The fields are those of a session's answer.
    """
    text = _PHASES.get(str(state.get("phase")), "unknown")
    windows = state.get("windows") or []
    count = int(state.get("window_count") or 0)
    if state.get("phase") == "recording" and windows:
        now = time.monotonic_ns() if now_ns is None else now_ns
        text += f" for {duration(max(0, now - int(windows[-1]['open_ns'])))} (window {count})"
    elif count:
        text += f", {counted(count, 'window')} recorded"
    if state.get("phase") == "over":
        text += f" ({state['over_by']})" if state.get("over_by") else ""
    if state.get("full"):
        text += ", --max-size is reached"
    return text


def closed(answer: dict[str, Any]) -> str:
    """Return which window a stop closed, and how long it was."""
    number = int(answer.get("window") or 0)
    windows = answer.get("windows") or []
    first = int(answer.get("window_count") or 0) - len(windows)
    index = number - 1 - first
    if number == 0:
        return "the recording is over" if answer.get("phase") == "over" else "nothing was being recorded"
    if 0 <= index < len(windows) and windows[index]["close_ns"]:
        window = windows[index]
        return f"window {number} closed, {duration(int(window['close_ns']) - int(window['open_ns']))} long"
    return f"window {number} closed"


def report_path(answer: dict[str, Any]) -> str:
    """Return the report's path for a shell."""
    return short_path(Path(str(answer.get("report") or "?")))
