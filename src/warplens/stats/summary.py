"""The block of columns that all NVTX summaries share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.durations import range_durations
from warplens.errors import MissingData
from warplens.model.framework_tables import OPERATORS
from warplens.model.words import counted
from warplens.stats.base import noted, share
from warplens.storage.memory import give_back

if TYPE_CHECKING:
    from warplens.report import Report, Selection


def nvtx_summary(
    report: Report, selection: Selection, *, style: str | None = None, show_style: bool = False
) -> pa.Table:
    """Summarize the ranges of one style (None: both) by name, the greatest total first.

    Raises MissingData if no range is left. The share is of the listed rows' total, not of wall time.
    """
    groups, unfinished = range_durations(report, selection)
    if style is not None:
        groups = groups.filter(pc.equal(groups.column("style"), style))
    groups, operators = _without_operators(report, groups)
    if not groups.num_rows:
        hint = f"; op_sum has its {counted(operators, 'operator')}" if operators else ""
        raise MissingData(f"does not contain {_what(style)} data{selection.place(report)}{hint}.")
    give_back()  # what a million names were counted in
    names = range_names(groups.column("domain"), groups.column("message"))
    groups = groups.drop_columns(["domain", "message"]).append_column("range", names)
    order = pc.sort_indices(groups, [("total", "descending"), ("range", "ascending"), ("style", "ascending")])
    for index, name in enumerate(groups.column_names):  # one by one: a copy of all would take as much again
        groups = groups.set_column(index, name, groups.column(index).take(order))
    count, total = groups.column("count"), groups.column("total")
    columns = {
        "Time (%)": share(total),
        "Total Time (ns)": total,
        "Instances": count,
        "Avg (ns)": pc.divide(pc.cast(total, pa.float64(), safe=False), pc.cast(count, pa.float64())),
        "Med (ns)": groups.column("median"),
        "Min (ns)": groups.column("min"),
        "Max (ns)": groups.column("max"),
        "StdDev (ns)": groups.column("stddev"),
        **({"Style": groups.column("style")} if show_style else {}),
        "Range": groups.column("range"),
    }
    still_open = sum(number for name, number in unfinished.items() if style in (None, name))
    elsewhere = f"{counted(operators, 'operator')} of PyTorch: see op_sum." if operators else ""
    return with_unfinished(pa.table(columns), still_open, elsewhere)


def _without_operators(report: Report, groups: pa.Table) -> tuple[pa.Table, int]:
    """Return the groups without operators of a framework, and how many ranges those are."""
    if not report.tables["ops"]:
        return groups, 0
    is_operator = pc.fill_null(pc.equal(groups.column("domain"), OPERATORS), False)
    count = pc.sum(groups.filter(is_operator).column("count")).as_py() or 0
    return groups.filter(pc.invert(is_operator)), count


def with_unfinished(table: pa.Table, count: int, *more: str) -> pa.Table:
    """Return `table` with a note about its ranges that never ended, and more notes."""
    text = f"{count:,} unfinished, counted up to when the process was last seen." if count else ""
    return noted(table, text, *more)


def range_names(
    domain: pa.ChunkedArray | pa.Array, message: pa.ChunkedArray | pa.Array
) -> pa.ChunkedArray | pa.Array:
    """Write `domain:name`; the default domain is empty, and so is a range without a name."""
    domain, message = (pc.fill_null(pc.cast(column, pa.string()), "") for column in (domain, message))
    return pc.binary_join_element_wise(domain, message, ":")


def _what(style: str | None) -> str:
    return {None: "NVTX", "PushPop": "NVTX push/pop range", "StartEnd": "NVTX start/end range"}[style]
