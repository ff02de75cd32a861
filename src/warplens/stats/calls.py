"""Summarises recorded calls in nsys's columns, grouped by function, thread, process or target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.samples import IDLE_THREADS
from warplens.analysis.ranges.phases import chosen, said
from warplens.model.words import duration
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

    The greatest total comes first; the time of threads that only wait at one place does not decide it.

    Args:
        report: the report.
        selection: rows that overlap it count whole; with an NVTX range, those in such ranges of their thread.
        table: name of the table.
        keys: columns of the result -> SQL expression.
        per: `process`, `thread`: what rows are grouped by, too. Percentages are of all rows nevertheless.
        missing: what the report does not contain if there is no row.
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
        more={"idle": f"coalesce(sum(value) FILTER (thread IN {IDLE_THREADS}), 0)::BIGINT"},
    )
    rows, idle = idle_last(rows)
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
        idle,
    )


def idle_last(rows: pa.Table) -> tuple[pa.Table, str]:
    """Sort `grouped` rows by their `total` without the `idle` part of it; return a note that says so, or an empty text."""
    idle = pc.sum(rows.column("idle")).as_py()
    if not idle:
        return rows, ""
    busy = pc.subtract(rows.column("total"), rows.column("idle"))
    order = np.lexsort((-rows.column("total").to_numpy(), -busy.to_numpy()))
    return rows.take(pa.array(order)), (
        f"Threads that only waited at one place have {duration(idle)} of it: this does not decide the order."
    )


def located(report: Report, rows: pa.Table) -> dict[str, pa.Array]:
    """Return the columns that name the process and thread of each row, if it has their keys."""
    if "thread" in rows.column_names:
        return of_threads(report, rows.column("process"), rows.column("thread"))
    return places(report, rows.column("process")) if "process" in rows.column_names else {}
