"""MPI Event Trace.

## What it shows
Every recorded MPI call, in order of start.

## Columns
- Start, End (ns): time since the start of the report. Duration (ns).
- Event: the function. Pid, Tid: process and thread of the caller.
- Tag: tag of a message. Rank: rank of the caller among all processes. PeerRank: rank at the other
  end of a message. RootRank: root of a collective.
- Size: size of a message in bytes. CollSendSize, CollRecvSize: bytes that a collective took from
  the caller and returned to it.

## How it is computed
The rows of `mpi_events`, sorted by time. With --filter-time, calls that overlap the time count.
With --filter-nvtx, calls count whose thread was in such a range.

## Traps
- Ranks are those of the world or of the communicator, as the recording tool wrote them. In another
  communicator, the same number is another process.
- Clocks of several hosts agree to a millisecond at best. Processes of one host share one clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.phases import chosen, said
from warplens.errors import MissingData
from warplens.stats.base import noted
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_COLUMNS = 'process, thread, "start", "end", name, tag, rank, peer, root, bytes, sent, received'


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the trace; raises MissingData if no call of MPI was recorded."""
    rows = report.sql(
        f'SELECT {_COLUMNS} FROM {chosen(report, selection, "mpi_events")} ORDER BY "start", process, id'
    )
    if not rows.num_rows:
        raise MissingData(f"does not contain MPI trace data{selection.place(report)}.")
    columns = {
        "Start (ns)": pc.subtract(rows.column("start"), report.origin),
        "End (ns)": pc.subtract(rows.column("end"), report.origin),
        "Duration (ns)": pc.subtract(rows.column("end"), rows.column("start")),
        "Event": rows.column("name"),
        "Pid": system_ids(report, rows, "processes", column="pid"),
        "Tid": system_ids(report, rows, "threads", column="tid"),
        "Tag": rows.column("tag"),
        "Rank": rows.column("rank"),
        "PeerRank": rows.column("peer"),
        "RootRank": rows.column("root"),
        "Size": rows.column("bytes"),
        "CollSendSize": rows.column("sent"),
        "CollRecvSize": rows.column("received"),
    }
    return noted(pa.table(columns), said(report, selection))
