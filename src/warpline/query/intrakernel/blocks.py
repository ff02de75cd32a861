"""Regions in pieces of whole blocks (CTAs), as arrays: what looks at warps of one block side by side need not hold all of a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpline.query.flatten import innermost
from warpline.query.native import codes
from warpline.query.row_groups import stream

if TYPE_CHECKING:
    from warpline.query.intrakernel.launches import Launches, Numbers, Units
    from warpline.query.report import Report

_AT_ONCE = 1 << 18  # regions of a piece, and more where a launch does not store its blocks one after the other
_COLUMNS = ("launch", "unit", "start", "end", "tag", "kind")


@dataclass(frozen=True, eq=False)
class Piece:
    """Regions of whole blocks. `unit`: place among the units; `tag`: number in the list of tags, which grows from piece to piece.

    `cta`: number of the block in this piece; rows are in its order. Marks are left out.
    """

    unit: Numbers
    cta: Numbers
    start: Numbers
    end: Numbers
    tag: Numbers


def pieces(report: Report, launches: Launches, units: Units, tags: list[str], *, own: bool = True) -> Iterator[Piece]:
    """Yield the regions of launches in pieces.

    Args:
        report: the report.
        launches: whose regions count.
        units: their warps.
        tags: gets the tags that are found.
        own: of regions that nest, give at each moment the innermost one alone; asynchronous ones stay whole.
    """
    block = _blocks(units)
    closed = _closed(block)
    waiting: list[dict[str, Numbers]] = []
    size = 0
    kinds: list[str] = []
    for rows in stream(report, "intrakernel_events", _COLUMNS, launches.window):
        part = _read(rows, units, tags, kinds)
        waiting.append(part)
        size += len(part["unit"])
        if size < _AT_ONCE:
            continue
        whole = {name: np.concatenate([one[name] for one in waiting]) for name in part}
        cut = _cut(whole["unit"], closed)
        for low, high in _steps(whole["unit"][:cut], closed):
            yield _piece({name: values[low:high] for name, values in whole.items()}, block, kinds, own)
        waiting = [{name: values[cut:] for name, values in whole.items()}]
        size = len(waiting[0]["unit"])
    if size:
        whole = {name: np.concatenate([one[name] for one in waiting]) for name in waiting[0]}
        for low, high in _steps(whole["unit"], closed):
            yield _piece({name: values[low:high] for name, values in whole.items()}, block, kinds, own)


def _blocks(units: Units) -> Numbers:
    """Return a number for the block of each unit; those of a launch follow those of the launch before."""
    if not len(units.cta):
        return np.zeros(0, np.int64)
    return np.asarray(np.unique(np.stack((units.launch, units.cta)), axis=1, return_inverse=True)[1].reshape(-1), np.int64)


def _closed(block: Numbers) -> npt.NDArray[np.bool_]:
    """Return behind which units no later one belongs to a block of theirs or of those before."""
    if not len(block):
        return np.zeros(0, bool)
    later = np.minimum.accumulate(block[::-1])[::-1]
    return np.append(np.maximum.accumulate(block)[:-1] < later[1:], True)


def _read(rows: pa.Table, units: Units, tags: list[str], kinds: list[str]) -> dict[str, Numbers]:
    ids = np.asarray(rows.column("unit").to_numpy(), np.int64)
    unit = units.place(ids)
    numbers = {name: np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("start", "end")}
    numbers |= {name: _interned(rows.column(name), known) for name, known in (("tag", tags), ("kind", kinds))}
    some = unit >= 0
    if "mark" in kinds:
        some &= numbers["kind"] != kinds.index("mark")
    return {name: values[some] for name, values in {"unit": unit, **numbers}.items()}


def _interned(column: pa.ChunkedArray, known: list[str]) -> Numbers:
    found = []
    for chunk in column.chunks:
        code, texts = codes(chunk)
        for text in texts.to_pylist():
            if text not in known:
                known.append(text)
        found.append(np.array([known.index(text) for text in texts.to_pylist()], np.int64)[code])
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _cut(unit: Numbers, closed: npt.NDArray[np.bool_]) -> int:
    """Return how many of the rows belong to blocks of which there will be no more."""
    last = np.flatnonzero(np.diff(unit) != 0)  # the last unit may go on
    good = last[closed[unit[last]]]
    return int(good[-1]) + 1 if len(good) else 0


def _steps(unit: Numbers, closed: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield from where to where pieces of about the right size reach."""
    ends = np.flatnonzero(np.diff(unit, append=-1) != 0)
    ends = ends[closed[unit[ends]]] + 1 if len(unit) else ends
    low = 0
    while low < len(unit):
        place = int(np.searchsorted(ends, low + _AT_ONCE, "left"))
        high = int(ends[place]) if place < len(ends) else len(unit)
        yield low, high
        low = high


def _piece(rows: dict[str, Numbers], block: Numbers, kinds: list[str], own: bool) -> Piece:
    unit, start, end, tag = (rows[name] for name in ("unit", "start", "end", "tag"))
    if own:
        whole = rows["kind"] == (kinds.index("asynchronous") if "asynchronous" in kinds else -1)
        at, first, last = _own(unit[~whole], start[~whole], end[~whole])
        unit, tag = (np.concatenate((values[~whole][at], values[whole])) for values in (unit, tag))
        start, end = np.concatenate((first, start[whole])), np.concatenate((last, end[whole]))
    cta = block[unit]
    if np.any(cta[1:] < cta[:-1]):
        order = np.argsort(cta, kind="stable")
        unit, start, end, tag, cta = (values[order] for values in (unit, start, end, tag, cta))
    cta = np.cumsum(np.diff(cta, prepend=cta[:1]) != 0)
    return Piece(unit, cta, start, end, tag)


def _own(unit: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return row, start and end of what is innermost in each unit: all units laid one behind the other, so that one pass does."""
    if not len(unit):
        return unit, start, end
    order = np.arange(len(unit))
    if not _sorted(unit, start, end):  # as reports have them
        order = np.lexsort((-end, start, unit))
        unit, start, end = unit[order], start[order], end[order]
    new = np.flatnonzero(np.diff(unit, prepend=unit[0] - 1))
    begin, finish = np.minimum.reduceat(start, new), np.maximum.reduceat(end, new)
    spans = finish - begin + 1
    shift = np.repeat(np.cumsum(spans) - spans - begin, np.diff(np.append(new, len(unit))))
    row, first, last = innermost(start + shift, end + shift)
    return order[row], first - shift[row], last - shift[row]


def _sorted(unit: Numbers, start: Numbers, end: Numbers) -> bool:
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    return bool(np.all((unit[1:] > unit[:-1]) | ((unit[1:] == unit[:-1]) & later)))
