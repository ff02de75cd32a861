"""The columns that summaries of CUDA share.

Total, number, mean, median, extremes and deviation of each group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import Naming, during
from warplens.errors import MissingData, UsageError
from warplens.stats.places import places

if TYPE_CHECKING:
    from warplens.report import Report, Selection
    from warplens.stats.by import By

DURATION = '"end" - "start"'
MEGABYTE = 1e6  # as nsys counts it
PLACE = ("process", "device")  # columns that divide sums: over several GPUs they mislead


def naming(base: bool, mangled: bool) -> Naming:
    """Return which of a kernel's names the arguments `:base` and `:mangled` ask for.

    Raises UsageError for both.
    """
    if base and mangled:
        raise UsageError("`:base` and `:mangled` exclude each other; use one of them.")
    return "base" if base else "mangled" if mangled else "demangled"


def grouped(
    report: Report,
    selection: Selection,
    relation: str,
    keys: Mapping[str, str],
    *,
    missing: str | Callable[[], MissingData],
    value: str = DURATION,
    per: Sequence[str] = PLACE,
    where: str | None = None,
    more: Mapping[str, str] | None = None,
) -> pa.Table:
    """Group the rows of an SQL relation that overlap the selection; the greatest total comes first.

    Args:
        report: the report.
        selection: which of the rows count.
        relation: its rows have `process`, `start`, `end` and what `keys`, `value` and `per` name.
        keys: column of the result -> SQL expression.
        missing: what the report "does not contain" where no row is left, or what makes the exception.
        value: SQL expression of the integer that is summed up.
        per: columns that divide rows further, beside the keys, and put in order of before the total.
        where: SQL condition for the rows that count, in place of the selection's.
        more: more columns of the result -> SQL expressions over the rows of a group.

    Returns:
        The columns of `per` and `keys`, then total, count, median, min, max, stddev (of a sample; 0 for one), those of `more` and `share`
        (percent of the total of all rows with the same `per`). Raises MissingData if no row is left.
    """
    text = f"""
    WITH chosen AS (SELECT *, {value} AS value FROM {relation} WHERE {where or during(report, selection)}),
    groups AS (
      SELECT {"".join(f"{name}, " for name in per)}{", ".join(f"{text} AS {_name(name)}" for name, text in keys.items())},
             sum(value)::BIGINT AS total, count(*) AS count, median(value)::DOUBLE AS median, min(value) AS min, max(value) AS max,
             coalesce(stddev_samp(value), 0.0) AS stddev{"".join(f", {text} AS {_name(name)}" for name, text in (more or {}).items())}
      FROM chosen GROUP BY ALL
    )
    SELECT *, coalesce(100.0 * total / nullif(sum(total) OVER ({f"PARTITION BY {', '.join(per)}" if per else ""}), 0), 0.0) AS share
    FROM groups ORDER BY {"".join(f"{name}, " for name in per)}total DESC, {", ".join(map(_name, keys))}
    """
    rows = report.sql(text)
    if not rows.num_rows:
        raise (
            MissingData(f"does not contain {missing}{selection.place(report)}.")
            if isinstance(missing, str)
            else missing()
        )
    return rows


def grouped_by(
    report: Report,
    selection: Selection,
    by: By | None,
    relation: str,
    keys: Mapping[str, str],
    *,
    missing: str | Callable[[], MissingData],
    value: str = DURATION,
) -> pa.Table:
    """Return the same, with rows grouped by GPU, stream, process or rank. None: all together."""
    chosen, per = (relation, ()) if by is None else (by.relation(relation), by.per)
    return grouped(report, selection, chosen, keys=keys, missing=missing, value=value, per=per)


def summary(
    report: Report, rows: pa.Table, keys: Sequence[str], *, count: str = "Instances", by: By | None = None
) -> pa.Table:
    """Shape what `grouped` returned as nsys does: the block, if it was, the keys.

    `count`: what the number of rows is called.
    """
    figures = block(rows, "Total Time (ns)", "ns", count=count)
    return pa.table(
        {"Time (%)": rows.column("share"), **figures, **where(report, rows, by), **_only(rows, keys)}
    )


def block(
    rows: pa.Table,
    total: str,
    unit: str,
    count: str,
    *,
    scale: float | None = None,
    count_first: bool = False,
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return the columns from the total to the deviation.

    `scale` is what values are divided by (None: they stay integers).

    `count_first`: the number of rows comes before the total.
    """

    def scaled(column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column if scale is None else pc.divide(pc.cast(column, pa.float64(), safe=False), scale)

    mean = pc.divide(
        pc.cast(rows.column("total"), pa.float64(), safe=False), pc.cast(rows.column("count"), pa.float64())
    )
    figures = {total: scaled(rows.column("total")), count: rows.column("count")}
    return {
        **(dict(reversed(figures.items())) if count_first else figures),
        f"Avg ({unit})": scaled(mean),
        f"Med ({unit})": scaled(rows.column("median")),
        f"Min ({unit})": scaled(rows.column("min")),
        f"Max ({unit})": scaled(rows.column("max")),
        f"StdDev ({unit})": scaled(rows.column("stddev")),
    }


def where(report: Report, rows: pa.Table, by: By | None = None) -> dict[str, pa.Array]:
    """Return the columns that say of each row of `grouped` where it was.

    None if rows were not kept apart.
    """
    if by is not None and by.by in ("rank", "stream"):
        nothing = [None] * rows.num_rows
        parts = [
            rows.column(name).to_pylist() if name in by.per else nothing
            for name in ("process", "device", "stream")
        ]
        return by.columns(list(zip(*parts, strict=True)))
    if "process" not in rows.column_names:
        return {}
    return places(
        report, rows.column("process"), rows.column("device") if "device" in rows.column_names else None
    )


def _only(rows: pa.Table, keys: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    return {name: rows.column(name) for name in keys}


def _name(name: str) -> str:
    return f'"{name}"'


def megabytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return bytes as MB."""
    return pc.divide(pc.cast(column, pa.float64(), safe=False), MEGABYTE)
