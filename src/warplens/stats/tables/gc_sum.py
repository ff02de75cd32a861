"""Python Garbage Collection Summary.

## What it shows
Number, pause times and results of Python's garbage collections.

## Columns
- Time (%): the row's share of the Total Time of all rows, not of wall time.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the collections. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Collections: number of collections.
- Collected, Uncollectable: objects that were freed, and objects that could not be freed.
- Host, Rank, PID: the process. Each is shown only if rows differ in it. TID, Thread: with
  `:by=thread`.
- Generation: 0 (young objects), 1, or 2 (all objects).

## How it is computed
Each collection counts with its full duration, by process. With --filter-time, collections that
overlap the time count. With --filter-nvtx, collections count whose thread was in such a range. With
--window, only the part inside the window counts.

## Traps
- A collection runs in the thread whose allocation reached the threshold. It holds the GIL, so all
  other Python threads wait.
- Generation 2 takes longer the more objects are alive, not the more garbage there is. gc.freeze()
  after start-up, or a larger threshold, helps.
- Objects that are freed by reference counting (nearly all) do not appear here.
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
    """Return the summary; raises MissingData if no collection was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `process`, `thread` or `all` (together): rows for each, beside the generation.
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
