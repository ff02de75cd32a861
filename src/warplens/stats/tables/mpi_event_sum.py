"""MPI Event Summary.

## What it shows
How often the program called each function of MPI, and how long the calls took.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the calls; StdDev is that of a sample (n-1), 0 for one call.
- Instances: how many calls.
- Host, Rank, PID: of the process, with `:by=process` and `:by=thread`; each only where the rows differ in it.
- TID, Thread: with `:by=thread`.
- Source: `p2p`, `collective`, `wait` (for what had begun before) or `other`.
- Name: the function.

## How it is computed
Every recorded call counts with its whole length, of all ranks together unless `:by` keeps them apart. With --filter-time, calls that
overlap the time; with --filter-nvtx, those of threads that were in such a range themselves. The greatest total comes first.

## Traps
- A collective takes as long as its last rank lets it: its time is mostly that of waiting for others, and the rank with the shortest calls
  is the one that all others wait for. `:by=process` shows it.
- What does not block (`MPI_Isend`) takes its time in a `wait`, or in none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.stats.base import one_of
from warplens.stats.calls import calls_sum

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_PER = {"function": (), "process": ("process",), "thread": ("process", "thread")}


def table(report: Report, selection: Selection, *, by: str = "function") -> pa.Table:
    """Return the summary; MissingData where no call of MPI was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides calls further, beside their function: `function` (nothing), `process` or `thread`.
    """
    per = _PER[one_of("by", by, tuple(_PER))]
    keys = {"Source": "kind", "Name": "name"}
    return calls_sum(
        report, selection, "mpi_events", keys=keys, per=per, missing="MPI trace data", count="Instances"
    )
