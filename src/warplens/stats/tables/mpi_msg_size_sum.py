"""MPI Message Size Summary.

## What it shows
Data that each MPI function sent and received.

## Columns
- Total Message Volume, Avg, Med, Min, Max, StdDev (bytes): sizes of the messages. StdDev is the
  sample standard deviation (n-1), 0 for a single value.
- Instances: number of messages.
- Source: `p2p` (a message between two ranks), `coll_send`, `coll_recv` (data that a collective took
  from a rank, and returned to it).
- Host, Rank, PID: the process, with `:by=process`. Each is shown only if rows differ in it.
- Name: the function.

## How it is computed
From the calls of `mpi_events` that have a size. A collective that sends and receives counts in two
rows. With --filter-time, calls that overlap the time count. With --filter-nvtx, calls count whose
thread was in such a range. The largest volume comes first.

## Traps
- A message counts at both ends: the calls of both ranks have its size.
- Sizes are those that programs passed to MPI, not the traffic on a wire: an all-reduce moves more,
  and ranks of one host may share memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.ranges.phases import chosen, said
from warplens.stats.base import noted, one_of
from warplens.stats.calls import located
from warplens.stats.sums import block, grouped

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_PER = {"function": (), "process": ("process",)}
_SIZES = {"p2p": "bytes", "coll_send": "sent", "coll_recv": "received"}


def table(report: Report, selection: Selection, *, by: str = "function") -> pa.Table:
    """Return the summary; raises MissingData if no message with a size was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together) or `process`: rows for each, beside the function.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    calls = chosen(report, selection, "mpi_events")
    parts = [
        f"SELECT process, name, '{source}' AS source, {size} AS size FROM calls WHERE {size} IS NOT NULL"
        for source, size in _SIZES.items()
    ]
    relation = f"(WITH calls AS (SELECT * FROM {calls}) {' UNION ALL '.join(parts)})"
    keys = {**{name: name for name in per}, "Source": "source", "Name": "name"}
    rows = grouped(
        report,
        selection,
        relation,
        keys=keys,
        missing="sizes of MPI messages",
        value="size",
        per=(),
        where="true",
    )
    columns = {
        **block(rows, "Total Message Volume (bytes)", "bytes", count="Instances"),
        **located(report, rows),
        "Source": rows.column("Source"),
        "Name": rows.column("Name"),
    }
    return noted(pa.table(columns), said(report, selection))
