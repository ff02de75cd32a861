"""Python Calls Summary.

## What it shows
How often the traced functions of Python were called and how long they took; which exceptions and warnings there were, and the tasks that
executors and pools ran.

## Columns
- Self (%), Self (ns): without the traced calls in it; percent of all rows.
- Total (ns): with them. A function that calls itself counts once.
- Calls: how many. Failed: how many of them ended by an exception.
- Avg, Med, Min, Max, StdDev (ns): of the calls with all that is in them; StdDev is that of a sample (n-1), 0 for one call.
- Host, Rank, PID, TID, Thread: with `:by=process` and `:by=thread`; Host, Rank and PID each only where the rows differ in it.
- Kind: `function`, `task`, `exception` or `warning`; the last two are instants.
- Name: of the function, exception or warning. Where: file and line.

## How it is computed
From the table `python_calls`, of all threads and processes together unless `:by` keeps them apart. With --filter-time, calls that overlap
the time; with --filter-nvtx, those of threads that were in such a range themselves; with --window, the piece of each that lies in the
window. The greatest Total comes first.

## Traps
- Only functions that were requested are traced (--python-functions-trace), or all with --trace=python: then short functions look longer
  than they are, because each call pays for the trace. cpu_hotspots has no such error.
- Self of a function holds all functions in it that were not traced.
- The Total of a coroutine or generator is from its begin to its end, with the time in which others ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.nested import nested
from warplens.analysis.ranges.phases import said
from warplens.errors import MissingData
from warplens.stats.base import noted, one_of, share
from warplens.stats.calls import located
from warplens.stats.sums import block

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_PER = {"function": (), "process": ("process",), "thread": ("process", "thread")}
_KINDS = ("all", "function", "task", "exception", "warning", "lock", "pause")
_KEYS = ("kind", "name", "file", "line")


def table(report: Report, selection: Selection, *, by: str = "function", kind: str = "all") -> pa.Table:
    """Return the summary; MissingData where no call was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides calls further, beside their function: `function` (nothing), `process` or `thread`.
        kind: `function`, `task`, `exception`, `warning`, `lock`, `pause` or `all`.
    """
    one_of("kind", kind, _KINDS)
    rows = nested(report, selection, "python_calls", keys=_KEYS, per=_PER[one_of("by", by, tuple(_PER))])
    if kind != "all":
        rows = rows.filter(pc.equal(pc.cast(rows.column("kind"), pa.string()), kind))
    if not rows.num_rows:
        raise MissingData(f"does not contain Python call data{selection.place(report)}.")
    figures = block(rows, "Sum (ns)", "ns", count="Calls")
    del figures["Sum (ns)"]  # of calls in calls of themselves, too
    columns = {
        "Self (%)": share(rows.column("own")),
        "Self (ns)": rows.column("own"),
        "Total (ns)": rows.column("whole"),
        **figures,
        "Failed": rows.column("failed"),
        **located(report, rows),
        "Kind": rows.column("kind"),
        "Name": rows.column("name"),
        "Where": [f"{file}:{line}" if file and line else file or "" for file, line in _places(rows)],
    }
    summary = pa.table(columns).sort_by(
        [("Total (ns)", "descending"), ("Calls", "descending"), ("Name", "ascending"), ("Where", "ascending")]
    )
    return noted(summary, said(report, selection))


def _places(rows: pa.Table) -> list[tuple[str | None, int | None]]:
    return list(zip(rows.column("file").to_pylist(), rows.column("line").to_pylist(), strict=True))
