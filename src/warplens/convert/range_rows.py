"""Row groups of `nvtx_ranges` and of `ops`.

Of a slice, and of ranges that had been open when their slice was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from warplens.convert import enclosing
from warplens.convert.nvtx import columns, ops
from warplens.convert.nvtx.columns import STYLES
from warplens.convert.nvtx.domains import Domains
from warplens.spool.events import RANGES, Events
from warplens.spool.strings import Strings

TABLE = "nvtx_ranges"
Write = Callable[[str, pa.Table], None]


def write_slice(events: Events, count: int, strings: Strings, domains: Domains, write: Write) -> None:
    """Write the ranges of the current slice.

    A row group ends where a range belongs that has not ended.
    """
    _write(
        events,
        count,
        events.splits() if events.following else [],
        strings=strings,
        domains=domains,
        write=write,
    )


def write_late(events: Events, count: int, strings: Strings, domains: Domains, write: Write) -> None:
    """Write the `count` ranges that waited for their ends until the current slice.

    Their columns are there now.

    What does not follow one another by its id gets a row group each, so that each can be put where it belongs.
    """
    ids = events.table(RANGES).column("id").to_numpy()
    _write(
        events,
        count,
        (np.flatnonzero(np.diff(ids) != 1) + 1).tolist(),
        strings=strings,
        domains=domains,
        write=write,
    )


def read(file: pq.ParquetFile, first: int, behind: int) -> Iterator[enclosing.Columns]:
    """Yield the ranges from id `first` to before `behind` again, row group by row group.

    As `enclosing.of_slice` has them.
    """
    place = file.schema_arrow.get_field_index("id")
    for number in range(file.num_row_groups):
        ids = file.metadata.row_group(number).column(place).statistics
        if first <= ids.min < behind:
            rows = file.read_row_group(
                number, columns=["id", "thread", "start", "end", "style"], use_threads=False
            )
            ranges = {name: rows.column(name).to_numpy() for name in ("id", "thread", "start", "end")}
            style = rows.column("style").combine_chunks().dictionary_encode()
            codes = np.array([text == STYLES[1] for text in style.dictionary.to_pylist()], np.int32)
            yield {**ranges, "style": codes[style.indices.to_numpy()]}


def _write(
    events: Events, count: int, edges: list[int], strings: Strings, domains: Domains, write: Write
) -> None:
    if not count:
        return
    whole = columns.slice_table(TABLE, events, strings, domains=domains)
    for first, last in pairwise((0, *edges, count)):
        if first < last:
            write(TABLE, whole.slice(first, last - first))
    ops.write(events, edges, strings, write)
