"""Python Calls Summary.

## What it shows
Number and duration of calls of the traced Python functions, and of the tasks that executors and
pools ran; and the exceptions and warnings.

## Columns
- Self (%), Self (ns): without the traced calls inside; the percentage is of all rows.
- Total (ns): with them. A function that calls itself counts once.
- Calls: number of calls. Failed: calls that ended with an exception.
- Avg, Med, Min, Max, StdDev (ns): of the calls with everything inside. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Host, Rank, PID, TID, Thread: with `:by=process` and `:by=thread`. Host, Rank and PID are each
  shown only if rows differ in it.
- Kind: `function`, `task`, `exception` or `warning`; the last two are moments.
- Name: the function, exception or warning. Where: file and line.

## How it is computed
From the table `python_calls`. All threads and processes are combined, unless `:by` divides them.
With --filter-time, calls that overlap the time count in full. With --filter-nvtx, calls count whose
thread was in such a range. With --window, only the part of a call inside the window counts. The
largest Total comes first.

## Traps
- Only requested functions are traced (--python-functions-trace), or all with --trace=python. Then
  short functions look longer than they are, because each call pays for the trace. cpu_hotspots does
  not have this error.
- Self of a function includes all functions inside it that were not traced.
- The Total of a coroutine or generator lasts from its start to its end, including the time in which
  others ran.
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
    """Return the summary; raises MissingData if no call was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` (all together), `process` or `thread`: rows for each, beside the function.
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
