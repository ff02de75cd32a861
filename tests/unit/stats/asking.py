"""Asks a stat of a report, as `warplens stats` does."""

from __future__ import annotations

from typing import Any

from warplens import catalog
from warplens.report import Report, Selection


def stat(
    report: Report, name: str, selection: Selection | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Return the rows of a table of `warplens stats`."""
    table = catalog.find("stats.tables", name).load().table(report, selection or Selection(), **options)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
