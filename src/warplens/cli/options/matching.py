"""Finds the processes and threads that the command line names, by id or by a part of the name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def matches(row: dict[str, Any], id: str, wanted: Sequence[str], name: str) -> bool:
    """Say whether a row is `wanted`: its column `id` is that number, or its name has that text. No words want all."""
    return not wanted or any(
        text == str(row[id]) or (not text.isdigit() and text.lower() in name.lower()) for text in wanted
    )


def process_name(row: dict[str, Any]) -> str:
    """Return the name of the program of a row of `processes`, else its command line."""
    return Path(row["executable"]).name or str(row["command"])
