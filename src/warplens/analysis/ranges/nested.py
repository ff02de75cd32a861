"""Sums nested calls by name, with their self time: imports, and traced functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.durations import Durations
from warplens.analysis.ranges.phases import chosen
from warplens.arrays import Int64Array
from warplens.report.columns import as_numbers

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

FIGURES = ("count", "total", "median", "min", "max", "stddev")


def nested(
    report: Report,
    selection: Selection,
    table: str,
    keys: Sequence[str],
    per: Sequence[str] = (),
    *,
    renamed: Callable[[str], str] | None = None,
) -> pa.Table:
    """Return a row per combination of keys, in no order.

    Args:
        report: the report.
        selection: rows that overlap it count whole; with an NVTX range, those in such ranges of their thread.
        table: it has id, parent, process, thread, start, end, name and failed.
        keys: columns in which calls of the same thing agree.
        per: columns that keep rows apart, too: `process`, `thread`.
        renamed: what to make of each name.

    Returns:
        Columns of `per` and `keys`; of the calls in ns count, total, median, min, max, stddev (of a sample; 0 for one); `own`: ns without
        what calls in them took; `whole`: ns in which there was such a call on a thread, so that a call inside one of the same counts once;
        `failed`: how many.
    """

    def column(name: str) -> pa.Array:
        """Read one column.

        All of them at once would take several times the memory of the result.
        """
        values = report.table(table, [name]).unify_dictionaries().column(0).combine_chunks()
        flat = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
        return _renamed(flat, renamed) if renamed is not None and name == "name" else flat

    ids = as_numbers(column("id"))
    kept = _chosen(report, selection, table, ids=ids)
    above = places(ids, as_numbers(column("parent")))
    del ids
    label = _combined([_codes(column(name)) for name in keys])
    group = (_combined([_codes(column(name)) for name in per] + [label]) if per else label)[kept]
    groups, example = np.unique(group, return_index=True)
    sums = {name: np.zeros(len(groups), np.int64) for name in ("own", "whole", "failed")}
    outer = outermost(above, label)[kept]
    del label
    start, end = as_numbers(column("start")), as_numbers(column("end"))
    # `own` starts as the length of each row; the length of each child is taken from its parent's below.
    length = end - start
    statistics = figures(start[kept], end[kept], group)
    del start, end
    # A call that is not inside another call of its label counts whole, others not at all: recursion
    # f > g > f counts the outer f once, as does an import inside itself.
    np.add.at(sums["whole"], group, np.where(outer, length[kept], 0))
    inside = np.flatnonzero(above >= 0)
    inner = length[inside]
    np.subtract.at(length, above[inside], inner)
    np.add.at(sums["own"], group, length[kept])
    failed = np.asarray(pc.fill_null(column("failed"), False).to_numpy(zero_copy_only=False))
    np.add.at(sums["failed"], group, failed[kept].astype(np.int64))
    wanted = pa.array(kept[example])
    return pa.table(
        {**{name: _plain(column(name).take(wanted)) for name in (*per, *keys)}, **statistics, **sums}
    )


def outermost(above: Int64Array, label: Int64Array) -> npt.NDArray[np.bool_]:
    """Say of each row whether none with its label is around it."""
    result = np.ones(len(above), bool)
    row = np.flatnonzero(above >= 0)
    around = above[row]
    # All rows climb one ancestor per pass and stop at the first with their label: passes are as many as rows nest.
    for _ in range(len(above)):  # not for ever, if parents should be in a circle
        if not len(row):
            break
        same = label[around] == label[row]
        result[row[same]] = False
        going = ~same & (above[around] >= 0)
        row, around = row[going], above[around[going]]
    return result


def places(ids: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return the position of each requested id, -1 for a missing one."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(ids, kind="stable")  # sorted within a part already
    place = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where(ids[place] == wanted, place, -1)


def figures(start: Int64Array, end: Int64Array, group: Int64Array) -> dict[str, pa.Array]:
    """Return the statistics of the lengths of each group, in order of their numbers."""
    if not len(group):
        return {
            name: pa.array(np.zeros(0, np.float64 if name in ("median", "stddev") else np.int64))
            for name in FIGURES
        }
    names = pa.array([str(number) for number in range(int(group.max()) + 1)])
    nothing = pa.nulls(len(group), pa.string())
    # The native statistics group by text, so the number of the group goes in as a text and comes back below.
    message = pa.DictionaryArray.from_arrays(pa.array(group.astype(np.int32)), names)
    with Durations() as durations:
        durations.add(
            pa.table({"start": start, "end": end, "style": nothing, "domain": nothing, "message": message})
        )
        statistics = durations.result()
    order = np.argsort(np.array(statistics.column("message").to_pylist(), np.int64))
    return {name: statistics.column(name).take(pa.array(order)) for name in FIGURES}


def _chosen(report: Report, selection: Selection, table: str, ids: Int64Array) -> Int64Array:
    """Return the positions of the rows that count."""
    if selection.time is None and selection.nvtx is None:
        return np.arange(len(ids))
    place = places(
        ids, as_numbers(report.sql(f"SELECT id FROM {chosen(report, selection, table)}").column("id"))
    )
    return np.sort(place[place >= 0])


def _renamed(names: pa.DictionaryArray, change: Callable[[str], str]) -> pa.DictionaryArray:
    changed = pa.array(
        [change(name) for name in names.dictionary.to_pylist()], pa.string()
    ).dictionary_encode()
    return pa.DictionaryArray.from_arrays(changed.indices.take(names.indices), changed.dictionary)


def _plain(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column


def _codes(column: pa.ChunkedArray) -> Int64Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return as_numbers(flat.indices if pa.types.is_dictionary(flat.type) else flat)


def _combined(columns: Sequence[Int64Array]) -> Int64Array:
    """Number the combinations of values that there are."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = np.asarray(pa.array(column).dictionary_encode().indices, np.int64)
        number = np.asarray(
            pa.array(number * (int(values.max(initial=0)) + 1) + values).dictionary_encode().indices, np.int64
        )
    return number
