"""Formats kernels that recorded their inside for the summary: durations, counts, records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.cli.printing.tables import apart
from warplens.cli.printing.words import counted, duration

if TYPE_CHECKING:
    from warplens.report import Report

_MOST = 5
_FIGURES = 45  # columns before and after the name
# The diagnostics report losses, with advice.
_TEXT = """
    SELECT coalesce(name, buffer_name, 'buffer ' || buffer) AS label, sum("end" - start)::BIGINT AS total, count(*) AS launches,
           sum(events)::BIGINT AS records
    FROM intrakernel_launches WHERE {part} GROUP BY ALL ORDER BY total DESC, label"""


def lines(report: Report, part: str, width: int) -> Iterator[str]:
    """Yield a line for each of the kernels of a part (an SQL condition) that took longest."""
    if not report.tables["intrakernel_launches"]:
        return
    rows = report.sql(_TEXT.format(part=part)).to_pylist()
    names = apart([row["label"] for row in rows[:_MOST]], max(width - _FIGURES, 24))
    for row in rows[:_MOST]:
        figures = f"{duration(row['total']):>9}  {row['launches']:>9,} x  {names[row['label']]}"
        yield f"{figures}: {counted(row['records'], 'record')}"
    if len(rows) > _MOST:
        yield f"and {len(rows) - _MOST} more: warplens stats -r intrakernel_imbalance"
