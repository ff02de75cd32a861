"""Summarises recorded calls in nsys's columns, grouped by function, thread, process or target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.ranges.phases import chosen, said
from warplens.stats.base import noted
from warplens.stats.places import of_threads, places
from warplens.stats.sums import block, grouped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warplens.report import Report, Selection


def calls_sum(
    report: Report,
    selection: Selection,
    table: str,
    keys: Mapping[str, str],
    *,
    per: tuple[str, ...],
    missing: str,
    count: str,
) -> pa.Table:
    """Return nsys' block of columns for the rows of a table with start and end.

    The greatest total comes first.

    Args:
        report: the report.
        selection: rows that overlap it count whole; with an NVTX range, those in such ranges of their thread.
        table: name of the table.
        keys: columns of the result -> SQL expression.
        per: `process`, `thread`: what rows are kept apart by, too. Percentages are of all rows nevertheless.
        missing: what the report does not contain where there is no row.
        count: what the number of rows is called.
    """
    apart = {name: f'"{name}"' for name in per}
    rows = grouped(
        report,
        selection,
        chosen(report, selection, table),
        keys={**apart, **keys},
        missing=missing,
        per=(),
        where="true",
    )
    return noted(
        pa.table(
            {
                "Time (%)": rows.column("share"),
                **block(rows, "Total Time (ns)", "ns", count=count),
                **located(report, rows),
                **{name: rows.column(name) for name in keys},
            }
        ),
        said(report, selection),
    )


def located(report: Report, rows: pa.Table) -> dict[str, pa.Array]:
    """Return the columns that name the process and thread of each row, where it has their keys."""
    if "thread" in rows.column_names:
        return of_threads(report, rows.column("process"), rows.column("thread"))
    return places(report, rows.column("process")) if "process" in rows.column_names else {}
