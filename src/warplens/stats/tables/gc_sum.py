"""Python Garbage Collection Summary.

## What it shows
How often Python's garbage collector ran, how long the program stood still for it, and what it found.

## Columns
- Time (%): the row's share of all rows' Total Time; not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): of the collections; StdDev is that of a sample (n-1), 0 for one.
- Collections: how many.
- Collected, Uncollectable: objects that were freed, and that could not be.
- Host, Rank, PID: of the process; each only where the rows differ in it. TID, Thread: with `:by=thread`.
- Generation: 0 (young objects), 1, or 2 (all objects).

## How it is computed
Every collection counts with its whole length, by process. With --filter-time, those that overlap the time; with --filter-nvtx, those of
threads that were in such a range themselves; with --window, the piece of each that lies in the window.

## Traps
- A collection runs in the thread that made one object too many, and all threads of Python wait for it: it holds the GIL.
- Generation 2 grows with what is alive, not with the garbage: gc.freeze() after start-up, or a larger threshold, is what helps.
- Objects freed by counting references, which is nearly all, are not in it.
- Python 3.14 collects generations step by step: more and shorter collections than before.
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

_PER = {"process": ("process",), "thread": ("process", "thread"), "all": ()}
_FOUND = {"collected": "sum(collected)::BIGINT", "uncollectable": "sum(uncollectable)::BIGINT"}


def table(report: Report, selection: Selection, *, by: str = "process") -> pa.Table:
    """Return the summary; MissingData where no collection was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: what collections are kept apart by, beside their generation: `process`, `thread` or `all` (nothing).
    """
    keys = {**{name: f'"{name}"' for name in _PER[one_of("by", by, tuple(_PER))]}, "Generation": "generation"}
    relation, missing = chosen(report, selection, "gc"), "Python garbage collection data"
    rows = grouped(report, selection, relation, keys=keys, missing=missing, per=(), where="true", more=_FOUND)
    columns = {
        "Time (%)": rows.column("share"),
        **block(rows, "Total Time (ns)", "ns", count="Collections"),
        "Collected": rows.column("collected"),
        "Uncollectable": rows.column("uncollectable"),
        **located(report, rows),
        "Generation": rows.column("Generation"),
    }
    return noted(pa.table(columns), said(report, selection))
