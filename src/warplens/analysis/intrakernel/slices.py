"""Cuts a launch into slices of time: the active units and regions in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.report.columns import integers

if TYPE_CHECKING:
    from warplens.arrays import Int64Array
    from warplens.report.report import Report


def at_once(report: Report, launch: int, edges: Int64Array) -> Int64Array:
    """Return how long units of a launch ran in each slice, added up, ns.

    `edges`: of the slices, rising.
    """
    rows = report.sql(f'SELECT "start", "end" FROM intrakernel_units WHERE launch = {launch}')
    return _within(integers(rows, "start"), integers(rows, "end"), edges)


def active(report: Report, launch: int, edges: Int64Array) -> dict[str, tuple[Int64Array, Int64Array]]:
    """Return the time (ns) of each tag of a launch in each slice, and the number of units with any."""
    rows = report.sql(
        f"""SELECT unit, "start", "end", tag FROM intrakernel_events WHERE launch = {launch} AND kind <> 'mark' AND "end" > "start"
            AND "start" < {int(edges[-1])} AND "end" > {int(edges[0])} ORDER BY tag, unit, "start" """
    )
    tags = rows.column("tag").combine_chunks().dictionary_encode()
    code = np.asarray(tags.indices.to_numpy(), np.int64)
    unit, start, end = (integers(rows, name) for name in ("unit", "start", "end"))
    bounds = np.searchsorted(
        code, np.arange(len(tags.dictionary) + 1)
    )  # codes are given in the order in which tags come
    by_tag = {}
    for number, tag in enumerate(tags.dictionary.to_pylist()):
        mine = slice(int(bounds[number]), int(bounds[number + 1]))
        by_tag[tag] = (
            _within(start[mine], end[mine], edges),
            _units(unit[mine], start[mine], end[mine], edges=edges),
        )
    return by_tag


def _within(start: Int64Array, end: Int64Array, edges: Int64Array) -> Int64Array:
    """Return how much of intervals, added up, lies between each edge and the next."""
    return np.diff(_before(start, edges) - _before(end, edges))


def _before(times: Int64Array, edges: Int64Array) -> Int64Array:
    """Return how far times before each edge are away from it, added up."""
    # As in a histogram of distances: for n times before edge e the distances add up to n * e -
    # sum(times).
    ordered = np.sort(times) - edges[0]
    sums = np.append(0, np.cumsum(ordered))
    number = np.searchsorted(ordered, edges - edges[0], "right")
    return np.asarray(number * (edges - edges[0]) - sums[number], np.int64)


def _units(unit: Int64Array, start: Int64Array, end: Int64Array, edges: Int64Array) -> Int64Array:
    """Return in how many units there was an interval in each slice.

    Rows are in order of unit and start.
    """
    slices = len(edges) - 1
    first = np.clip(np.searchsorted(edges, start, "right") - 1, 0, slices - 1)
    last = np.clip(np.searchsorted(edges, end, "left") - 1, 0, slices - 1)
    base = np.cumsum(np.diff(unit, prepend=unit[:1]) != 0) * (
        slices + 1
    )  # units one behind the other: none reaches into the next
    reach = np.maximum.accumulate(base + last)
    begin = base + first
    begin[1:] = np.maximum(begin[1:], reach[:-1] + 1)  # what the unit was seen in before counts once
    some = begin <= base + last
    # +1 in the first new slice of an interval, -1 behind its last: the running sum is the number of
    # units in each slice. A unit with intervals in the slices [1, 2] and [2, 4] adds +1 at 1, -1 at
    # 3, +1 at 3, -1 at 5, so each of the slices 1 to 4 counts it once.
    change = np.zeros(slices + 1, np.int64)
    np.add.at(change, (begin - base)[some], 1)
    np.add.at(change, last[some] + 1, -1)
    return np.cumsum(change)[:-1]
