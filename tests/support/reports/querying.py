"""Asks a recorded report in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warplens.report import open as open_report


def rows(report: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with open_report(report) as opened:
        return [tuple(row.values()) for row in opened.sql(sql).to_pylist()]
