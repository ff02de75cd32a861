"""Lists the losses of a format for this report. A loss that names tables counts only if they have rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warplens.report import Report

Loss = str | tuple[str, ...]
"""A few words; or these, and behind them each `table` or `table.column` that holds what is lost."""


def losses(report: Report, loses: Iterable[Loss]) -> list[str]:
    """Return those of the losses of a format that this report has."""
    texts = []
    for loss in loses:
        text, *places = (loss,) if isinstance(loss, str) else loss
        if not places or any(_has(report, place) for place in places):
            texts.append(text)
    return texts


def _has(report: Report, place: str) -> bool:
    """Whether a table has rows, and a value in the column where one is named."""
    table, _, column = place.partition(".")
    if not report.tables[table]:
        return False
    if not column:
        return True
    values = report.table(table, [column])[column]
    return bool(values.null_count < len(values))
