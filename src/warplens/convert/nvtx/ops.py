"""Rows of `ops`: the ranges of a slice that are operators of a framework."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.spool.events import OPS, RANGES, Events
from warplens.spool.strings import Strings
from warplens.storage import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TABLE = "ops"


def write(
    events: Events, edges: Sequence[int], strings: Strings, write: Callable[[str, pa.Table], None]
) -> None:
    """Write the operators among the ranges of the current slice.

    `edges`: the rows of ranges at which a row group ends.
    """
    row = events.column(OPS, "row", np.uint32)
    if not len(row):
        return
    whole = _table(events, row, strings)
    places = np.searchsorted(row, np.asarray(edges, np.int64)).tolist()
    for first, last in pairwise((0, *places, len(row))):
        if first < last:
            write(TABLE, whole.slice(first, last - first))


def _table(events: Events, row: npt.NDArray[np.uint32], strings: Strings) -> pa.Table:
    count = len(row)
    times = {
        name: events.column(RANGES, source, np.int64)[row]
        for name, source in (
            ("range", "id"),
            ("process", "process"),
            ("thread", "thread"),
            ("start", "start"),
            ("end", "end"),
        )
    }
    numbers = {
        name: pa.array(events.column(OPS, name, np.int64), mask=_missing(events, OPS, name, count=count))
        for name in ("sequence", "forward")
    }
    texts = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(events.column(OPS, name, np.int32), mask=_missing(events, OPS, name, count=count)),
            strings.take(events.column(OPS, f"{name}=", np.uint32)),
        )
        for name in ("shapes", "types")
    }
    ranges = len(events.column(RANGES, "id", np.int64))
    names = pa.DictionaryArray.from_arrays(
        pa.array(
            events.column(RANGES, "message", np.int32)[row],
            mask=_missing(events, RANGES, "message", count=ranges)[row],
        ),
        strings.take(events.column(RANGES, "message=", np.uint32)),
    )
    backward = events.column(OPS, "backward", np.uint8) != 0
    return schema.build(TABLE, {**times, **numbers, **texts, "name": names, "backward": backward})


def _missing(events: Events, table: int, name: str, count: int) -> npt.NDArray[np.bool_]:
    """Return where a column has no value."""
    bits = events.column(table, f"{name}?", np.uint8)
    return np.asarray(np.unpackbits(bits, count=count, bitorder="little") == 0, bool)
