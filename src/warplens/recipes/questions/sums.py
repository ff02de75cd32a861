"""A table of `stats` over many reports: shows how each row differs between ranks.

## What it asks
Each row of a table of `warplens stats`, compared over the ranks: the number of ranks with the row,
the mean, standard deviation, minimum, quartiles, maximum and sum of its time, and the rank with the
maximum. `warplens recipe cuda_gpu_kern_sum …` is short for `sums:stat=cuda_gpu_kern_sum`.

## How it is computed
The table of each report is that of `warplens stats -r`. Rows with the same texts (name, operation,
…) are combined. The values are those of the first time column, or else of the first column of
numbers, or of `:column=`. The standard deviation is the sample standard deviation. Quartiles are
interpolated linearly.

## Traps
A rank without a row counts as absent, not as 0. A report with the processes of several ranks is one
row of each name: import each rank as one report.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from warplens import catalog
from warplens.errors import MissingData, UsageError
from warplens.model.words import counted
from warplens.recipes import ranks
from warplens.recipes.base import REPORT, Answer, Summary
from warplens.report import Report, Selection

STATS = "stats.tables"
_ORDER = ("Reports", "Mean", "StdDev", "Min", "Q1", "Med", "Q3", "Max", "Sum")


def part(report: Report, *, stat: str = "nvtx_sum", column: str = "") -> Summary:
    """Compute the table of one report.

    Args:
        report: report of one rank.
        stat: table of `warplens stats`.
        column: column to compare, e.g. `Instances`; default: the first time column.
    """
    table = catalog.find(STATS, stat).load().table(report, Selection())
    return {
        "rows": table.replace_schema_metadata(),
        "reports": ranks.named_report(report),
    }


def answer(summary: Summary, *, stat: str = "nvtx_sum", column: str = "") -> Answer:
    """Compare the rows of all reports."""
    rows = summary["rows"]
    names = [
        field.name
        for field in rows.schema
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)
    ]
    value = _compared(rows, names, column)
    if not names:
        raise MissingData(f"{stat} has no names to compare rows by.")
    texts = rows.select([*names, REPORT]).append_column("value", rows.column(value).cast(pa.float64()))
    for number, name in enumerate(names):
        texts = texts.set_column(number, name, texts.column(name).cast(pa.string()).fill_null(""))
    over_ranks = _over_reports(texts, names, value)
    labels = ranks.names_of_reports(summary["reports"])
    greatest = texts.join(over_ranks.select([*names, "Max"]), keys=names, join_type="inner")
    greatest = greatest.filter(pc.equal(greatest.column("value"), greatest.column("Max")))
    first = greatest.group_by(names).aggregate([(REPORT, "min")])
    over_ranks = over_ranks.join(first, keys=names).sort_by([("Sum", "descending")])
    worst = [labels[number] for number in over_ranks.column(f"{REPORT}_min").to_pylist()]
    over_ranks = over_ranks.select([*names, *_ORDER]).append_column("Max at", pa.array(worst))
    unit = value.partition("(")[2]
    over_ranks = over_ranks.rename_columns(
        [f"{name} ({unit}" if unit and name in _ORDER[1:] else name for name in over_ranks.column_names]
    )
    by_report = rows.set_column(
        rows.column_names.index(REPORT),
        "Rank",
        pa.array([labels[one] for one in rows.column(REPORT).to_pylist()]),
    )
    count = summary["reports"].num_rows
    return Answer(
        [f"{value} of {stat} over {counted(count, 'report')}."],
        tables={"over_ranks": over_ranks},
        details={"by_rank": by_report},
        facts={"stat": stat, "column": value, "reports": count},
    )


def _compared(rows: pa.Table, names: list[str], column: str) -> str:
    """Return the name of the column that is compared."""
    numbers: list[str] = [name for name in rows.column_names if name not in (*names, REPORT)]
    if column:
        near = [
            name for name in numbers if name.partition(" (")[0].lower() == column.lower() or name == column
        ]
        if not near:
            raise UsageError(
                f"the table has no numeric column {column!r}; choose from: {', '.join(numbers)}."
            )
        return near[0]
    times = [name for name in numbers if name.endswith("(ns)")]
    if not numbers:
        raise MissingData("the table has no numeric column.")
    return (times or numbers)[0]


def _over_reports(texts: pa.Table, names: list[str], value: str) -> pa.Table:
    """Return one row for each name, with the distribution of its value over the reports."""
    each = texts.group_by([*names, REPORT]).aggregate([("value", "sum")])
    import numpy as np

    order = each.sort_by([(name, "ascending") for name in names])
    keys = order.select(names)
    values = order.column("value_sum").to_numpy()
    begins = np.flatnonzero(_changes(keys))
    groups = np.split(values, begins[1:])
    quartiles = np.array([np.percentile(group, (0, 25, 50, 75, 100)) for group in groups])
    table = keys.take(pa.array(begins))
    columns = {
        "Reports": pa.array([len(group) for group in groups], pa.int64()),
        "Mean": [group.mean() for group in groups],
        "StdDev": [group.std(ddof=1) if len(group) > 1 else 0.0 for group in groups],
        **{name: quartiles[:, place] for place, name in enumerate(("Min", "Q1", "Med", "Q3", "Max"))},
        "Sum": [group.sum() for group in groups],
    }
    for name in _ORDER:
        table = table.append_column(name, pa.array(columns[name]))
    return table


def _changes(keys: pa.Table) -> pa.Array:
    """Return where rows in order differ from the row before."""
    import numpy as np

    different = np.zeros(keys.num_rows, bool)
    different[:1] = True
    for column in keys.columns:
        codes = column.combine_chunks().dictionary_encode().indices.to_numpy()
        different[1:] |= codes[1:] != codes[:-1]
    return different
