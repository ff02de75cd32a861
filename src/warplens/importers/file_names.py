"""Reads order and rank from the names of files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_RANK = re.compile(r"rank[-_.]?(\d{1,7})", re.IGNORECASE)


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Return paths so that numbers in their names count as such: rank 10 comes behind rank 9."""
    return sorted(
        paths,
        key=lambda path: [
            (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)
        ],
    )


def rank_in(name: str) -> int | None:
    """Return the rank that a name says, such as 3 of `run.rank3`; None if it says none."""
    match = _RANK.search(name)
    return int(match[1]) if match else None
