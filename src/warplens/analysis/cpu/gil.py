"""Waits for Python's global lock (GIL), by waiting and by holding thread."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.distinct import distinct
from warplens.analysis.ranges.phases import chosen, spans
from warplens.arrays import Int32Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_AT_ONCE = 1 << 21  # pairs of wait and hold that are in memory together
_COLUMNS = 'process, interpreter, thread, "start", "end"'


def contention(report: Report, selection: Selection) -> pa.Table:
    """Return the waits for the GIL by waiter and holder, the greatest first.

    Columns: process, waiter and holder (keys of threads), waited (ns), waits (how many) and longest
    (ns).

    Of waits that lie in the selection only in part, that part. What both threads recorded one by one is in it: waits and holds below the
    threshold are not.
    """
    text = "SELECT {} FROM {} WHERE state = '{}' ORDER BY process, interpreter, \"start\""
    waits = _cut(
        report.sql(text.format(_COLUMNS, chosen(report, selection, "gil"), "wait")), report, selection
    )
    holds = report.sql(text.format(_COLUMNS, "gil", "hold"))
    coded = pa.array(
        np.concatenate((_numbers(waits, "thread"), _numbers(holds, "thread")))
    ).dictionary_encode()
    threads, codes = np.asarray(coded.dictionary), np.asarray(coded.indices, np.int64)
    waiter, holder = codes[: waits.num_rows], codes[waits.num_rows :]
    count = len(threads)
    sums = _Pairs(count * count)
    process = np.zeros(count, np.int64)
    process[waiter] = _numbers(waits, "process")
    wait_start, wait_end = _numbers(waits, "start"), _numbers(waits, "end")
    hold_start, hold_end = _numbers(holds, "start"), _numbers(holds, "end")
    for mine, theirs in _alike(waits, holds):
        for wait, hold in _meetings(
            wait_start[mine], wait_end[mine], first=hold_start[theirs], last=hold_end[theirs]
        ):
            wait, hold = wait + mine.start, hold + theirs.start
            both = np.minimum(wait_end[wait], hold_end[hold]) - np.maximum(wait_start[wait], hold_start[hold])
            some = (both > 0) & (waiter[wait] != holder[hold])
            pair = waiter[wait[some]] * count + holder[hold[some]]
            once = np.sort(wait[some] * count + holder[hold[some]])  # np.unique takes ten times as long
            once = once[np.diff(once, prepend=-1) != 0]
            sums.add(pair, both[some], waiter[once // count] * count + once % count)
    pairs, waited, waits_of, longest = sums.result()
    keys = (
        {
            "process": process[pairs // count],
            "waiter": threads[pairs // count],
            "holder": threads[pairs % count],
        }
        if count
        else {}
    )
    figures = {"waited": waited, "waits": waits_of, "longest": longest}
    names = ("process", "waiter", "holder", *figures)
    return pa.table(
        {name: pa.array({**keys, **figures}.get(name, np.zeros(0, np.int64)), pa.int64()) for name in names}
    )


class _Pairs:
    """Sums over pairs of threads, of which few meet.

    A table of all pairs of 10,000 threads would take 2.4 GB. `width`: of the keys.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._blocks: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array]] = []

    def add(self, pair: Int64Array, both: Int64Array, once: Int64Array) -> None:
        """Add meetings of pairs that took `both` ns.

        `once`: the pair of each wait and each thread that it met.
        """
        used, place = distinct(pair, self._width)
        waits = np.bincount(np.searchsorted(used, once), minlength=len(used)).astype(np.int64)
        self._blocks.append((used, *_summed(len(used), place, both, longest=both), waits))
        if sum(len(block[0]) for block in self._blocks) > _AT_ONCE:
            self._merge()

    def result(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """Return the pairs, how long one waited in all, how often, and at the longest, the greatest first."""
        self._merge()
        pairs, waited, longest, waits = self._blocks[0]
        order = np.argsort(-waited, kind="stable")
        return pairs[order], waited[order], waits[order], longest[order]

    def _merge(self) -> None:
        nothing = np.empty(0, np.int64)
        pairs, waited, longest, waits = (
            np.concatenate([nothing, *(block[column] for block in self._blocks)]) for column in range(4)
        )
        used, place = distinct(pairs, self._width)
        summed, most = _summed(len(used), place, waited, longest=longest)
        number = np.zeros(len(used), np.int64)
        np.add.at(number, place, waits)
        self._blocks = [(used, summed, most, number)]


def _summed(
    count: int, place: Int32Array, values: Int64Array, longest: Int64Array
) -> tuple[Int64Array, Int64Array]:
    total, most = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(total, place, values)
    np.maximum.at(most, place, longest)
    return total, most


def _cut(waits: pa.Table, report: Report, selection: Selection) -> pa.Table:
    """Return the pieces of waits that lie in the selection."""
    if selection.nvtx is None:
        window = selection.window(report)
        if window is None:
            return waits
        edges = {
            "start": np.maximum(_numbers(waits, "start"), window[0]),
            "end": np.minimum(_numbers(waits, "end"), window[1]),
        }
        return _with(waits, edges)
    inside = report.sql(
        f'SELECT thread, first AS "start", last AS "end" FROM {spans(report, selection)} ORDER BY thread, first'
    )
    waits = waits.sort_by([("thread", "ascending"), ("start", "ascending")])
    start, end, first, last = (
        _numbers(table, name) for table in (waits, inside) for name in ("start", "end")
    )
    parts = [waits.slice(0, 0)]
    for mine, theirs in _alike(waits, inside, ("thread",)):
        for wait, span in _meetings(start[mine], end[mine], first=first[theirs], last=last[theirs]):
            wait, span = wait + mine.start, span + theirs.start
            edges = {"start": np.maximum(start[wait], first[span]), "end": np.minimum(end[wait], last[span])}
            parts.append(_with(waits.take(pa.array(wait)), edges))
    return pa.concat_tables(parts).sort_by(
        [(name, "ascending") for name in ("process", "interpreter", "start")]
    )


def _meetings(
    start: Int64Array, end: Int64Array, first: Int64Array, last: Int64Array
) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield the positions of intervals and of those they may overlap, many at once.

    `first` is sorted; its intervals hardly overlap.
    """
    # The intervals hardly overlap, so their ends may fall a little. The running maximum of the ends
    # never falls, so it can be searched. It may add an interval that ended before `start`, never
    # miss one, and the caller cuts each pair to its true overlap.
    low = np.searchsorted(np.maximum.accumulate(last), start, side="right")
    counts = np.maximum(np.searchsorted(first, end) - low, 0)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    # Portions of about _AT_ONCE pairs, as all pairs may not fit into memory. An interval's pairs
    # are never divided.
    edges = [
        0,
        *np.unique(np.searchsorted(ends, np.arange(_AT_ONCE, total, _AT_ONCE), side="right")).tolist(),
        len(counts),
    ]
    for begin, behind in pairwise(edges):
        own = counts[begin:behind]
        left = np.repeat(np.arange(begin, behind), own)
        yield left, np.repeat(low[begin:behind] - (np.cumsum(own) - own), own) + np.arange(own.sum())


def _alike(
    left: pa.Table, right: pa.Table, keys: tuple[str, ...] = ("process", "interpreter")
) -> Iterator[tuple[slice, slice]]:
    """Yield the rows of two tables, both sorted by the keys, in which these agree."""
    slices_by_key = []
    for table in (left, right):
        columns = [_numbers(table, name) for name in keys]
        changes = np.zeros(table.num_rows, bool)
        for column in columns:
            # `column[:1] - 1` differs from the first value, so the first row always begins a group (and an empty column stays empty).
            changes |= np.diff(column, prepend=column[:1] - 1) != 0
        edges = [*np.flatnonzero(changes).tolist(), table.num_rows]
        slices_by_key.append(
            {
                tuple(int(column[begin]) for column in columns): slice(begin, end)
                for begin, end in pairwise(edges)
            }
        )
    for key, rows in slices_by_key[0].items():
        if key in slices_by_key[1]:
            yield rows, slices_by_key[1][key]


def _with(rows: pa.Table, columns: dict[str, Int64Array]) -> pa.Table:
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, pa.int64()))
    return rows


def _numbers(table: pa.Table, name: str) -> Int64Array:
    return np.asarray(table.column(name).to_numpy(), np.int64)
