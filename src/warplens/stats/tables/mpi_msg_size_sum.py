"""MPI Message Size Summary.

## What it shows
How much each function of MPI sent and received.

## Columns
- Total Message Volume, Avg, Med, Min, Max, StdDev (bytes): of the messages; StdDev is that of a sample (n-1), 0 for one message.
- Instances: how many messages.
- Source: `p2p` (a message from one rank to another), `coll_send`, `coll_recv` (what a collective took from a rank, and gave it).
- Host, Rank, PID: of the process, with `:by=process`; each only where the rows differ in it.
- Name: the function.

## How it is computed
From the calls of `mpi_events` that have a size; a collective with both counts in two rows. With --filter-time, calls that overlap the
time; with --filter-nvtx, those of threads that were in such a range themselves. The greatest volume comes first.

## Traps
- A message counts where it is sent and where it is received: both ranks' calls have its size.
- It is what programs handed to MPI, not what went over a wire: an all-reduce moves more, ranks of one host may share memory.
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
    """Return the summary; MissingData where no message with a size was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides messages further, beside their function: `function` (nothing) or `process`.
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
