"""Rows of `ops`: the ranges of a slice that are operators of a framework."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.convert.nvtx.columns import texts
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
    ops = events.table(OPS)
    if not ops.num_rows:
        return
    whole = _table(events.table(RANGES), ops, strings)
    places = np.searchsorted(ops.column("row").to_numpy(), np.asarray(edges, np.int64)).tolist()
    for first, last in pairwise((0, *places, ops.num_rows)):
        if first < last:
            write(TABLE, whole.slice(first, last - first))


def _table(ranges: pa.RecordBatch, ops: pa.RecordBatch, strings: Strings) -> pa.Table:
    row = ops.column("row").to_numpy()
    of_ranges = {
        name: ranges.column(source).to_numpy()[row]
        for name, source in (
            ("range", "id"),
            ("process", "process"),
            ("thread", "thread"),
            ("start", "start"),
            ("end", "end"),
        )
    }
    message = ranges.column("message")
    codes = message.indices.fill_null(-1).to_numpy()[row]
    names = pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=codes < 0), strings.take(message.dictionary.to_numpy())
    )
    own = {name: ops.column(name) for name in ("sequence", "forward")}
    inputs = {name: texts(ops.column(name), strings) for name in ("shapes", "types")}
    backward = ops.column("backward").to_numpy() != 0
    return schema.build(TABLE, {**of_ranges, **own, **inputs, "name": names, "backward": backward})
