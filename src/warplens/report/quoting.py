"""Quotes texts, names and keys for SQL."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(text: str | None) -> str:
    """Return a text as a literal; NULL if there is none."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """Return the name of a table or column."""
    return '"' + name.replace('"', '""') + '"'


def listed(keys: Iterable[int]) -> str:
    """Return keys for `IN (…)`; NULL if there are none."""
    return ", ".join(str(int(key)) for key in keys) or "NULL"
