"""Regions in pieces of whole blocks (CTAs), as arrays.

So comparing warps of one block needs only a piece of the report in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.analysis.dictionaries import codes
from warplens.report.row_groups import stream

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches, Units
    from warplens.arrays import Int64Array
    from warplens.report.report import Report

_AT_ONCE = (
    1 << 18
)  # regions of a piece, and more where a launch does not store its blocks one after the other
_COLUMNS = ("launch", "unit", "start", "end", "tag", "kind")


@dataclass(frozen=True, eq=False)
class RegionChunk:
    """Regions of whole blocks.

    `unit`: place among the units; `tag`: number in the list of tags, which grows from piece to
    piece.

    `whole`: asynchronous ones, which hide nothing and are not hidden; of the others, the innermost counts. Marks are left out.
    """

    unit: Int64Array
    start: Int64Array
    end: Int64Array
    tag: Int64Array
    whole: npt.NDArray[np.bool_]


def pieces(
    report: Report, launches: IntrakernelLaunches, units: Units, tags: list[str]
) -> Iterator[RegionChunk]:
    """Yield the regions of launches in pieces.

    Args:
        report: the report.
        launches: whose regions count.
        units: their warps.
        tags: receives the tags of the regions, in order of first use.
    """
    closed = _closed(block_of(units))
    waiting: list[dict[str, Int64Array]] = []
    size = 0
    kinds: list[str] = []
    for rows in stream(report, "intrakernel_events", _COLUMNS, window=launches.window):
        part = _read(rows, units, tags, kinds=kinds)
        waiting.append(part)
        size += len(part["unit"])
        if size < _AT_ONCE:
            continue
        whole = {name: np.concatenate([chunk[name] for chunk in waiting]) for name in part}
        cut = _cut(whole["unit"], closed)
        for low, high in _steps(whole["unit"][:cut], closed):
            yield _piece({name: values[low:high] for name, values in whole.items()}, kinds)
        waiting = [{name: values[cut:] for name, values in whole.items()}]
        size = len(waiting[0]["unit"])
    if size:
        whole = {name: np.concatenate([chunk[name] for chunk in waiting]) for name in waiting[0]}
        for low, high in _steps(whole["unit"], closed):
            yield _piece({name: values[low:high] for name, values in whole.items()}, kinds)


def block_of(units: Units) -> Int64Array:
    """Return a number for the block of each unit.

    Those of a launch follow those of the launch before.
    """
    most = int(units.cta.max(initial=0)) + 1
    return units.launch * most + units.cta


def _closed(block: Int64Array) -> npt.NDArray[np.bool_]:
    """Return behind which units no later one belongs to a block of theirs or of those before."""
    if not len(block):
        return np.zeros(0, bool)
    # Behind unit i no later unit has a block number up to the greatest so far. For blocks [0, 1, 0,
    # 2] the greatest so far is [0, 1, 1, 2] and the least of the later ones [0, 0, 2, -], so a cut
    # is possible behind units 2 and 3.
    later = np.minimum.accumulate(block[::-1])[::-1]
    return np.append(np.maximum.accumulate(block)[:-1] < later[1:], True)


def _read(rows: pa.Table, units: Units, tags: list[str], kinds: list[str]) -> dict[str, Int64Array]:
    ids = np.asarray(rows.column("unit").to_numpy(), np.int64)
    unit = units.place(ids)
    numbers = {name: np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("start", "end")}
    numbers |= {name: _interned(rows.column(name), known) for name, known in (("tag", tags), ("kind", kinds))}
    some = unit >= 0
    if "mark" in kinds:
        some &= numbers["kind"] != kinds.index("mark")
    columns = {"unit": unit, **numbers}
    return columns if some.all() else {name: values[some] for name, values in columns.items()}


def _interned(column: pa.ChunkedArray, known: list[str]) -> Int64Array:
    tag_numbers = []
    for chunk in column.chunks:
        code, texts = codes(chunk)
        for text in texts.to_pylist():
            if text not in known:
                known.append(text)
        tag_numbers.append(np.array([known.index(text) for text in texts.to_pylist()], np.int64)[code])
    return np.concatenate(tag_numbers) if tag_numbers else np.zeros(0, np.int64)


def _cut(unit: Int64Array, closed: npt.NDArray[np.bool_]) -> int:
    """Return how many of the rows belong to blocks of which there will be no more."""
    # Rows come by unit. A cut may only follow the last row of a block whose units are all read (`closed`); what is behind waits.
    last = np.flatnonzero(np.diff(unit) != 0)  # the last unit may continue
    good = last[closed[unit[last]]]
    return int(good[-1]) + 1 if len(good) else 0


def _steps(unit: Int64Array, closed: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield from where to where pieces of about the right size reach."""
    ends = np.flatnonzero(np.diff(unit, append=-1) != 0)
    ends = ends[closed[unit[ends]]] + 1 if len(unit) else ends
    low = 0
    while low < len(unit):
        place = int(np.searchsorted(ends, low + _AT_ONCE, "left"))
        high = int(ends[place]) if place < len(ends) else len(unit)
        yield low, high
        low = high


def _piece(rows: dict[str, Int64Array], kinds: list[str]) -> RegionChunk:
    whole = rows["kind"] == (kinds.index("asynchronous") if "asynchronous" in kinds else -1)
    return RegionChunk(rows["unit"], rows["start"], rows["end"], tag=rows["tag"], whole=whole)
