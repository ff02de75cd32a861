"""Python Import Summary.

## What it shows
Which modules took how long to import, and what of it was their own.

## Columns
- Self (%), Self (ns): without the modules that it imported; percent of all rows.
- Total (ns): with them.
- Imports: how many; more than one where several processes import it. Failed: how many raised.
- Host, Rank, PID: with `:by=process`; each only where the rows differ in it.
- Module, or with `:by=package` Package: the name up to its first dot.

## How it is computed
From the table `imports`, which has the first import of each module: Self is the time of an import without that of those directly in it.
The Total of a package holds every ns once: imports within it count with the outermost. With --filter-time, imports that overlap the time;
with --filter-nvtx, those of threads that were in such a range themselves. Rows below `:min-percent` of all Self time are left out. The
greatest Self comes first.

## Traps
- Self adds up to the time spent importing, Total does not: it is what not importing the module would have saved, if nothing else needs
  what it imports.
- Modules that were there before the recording began are not in it.
- The first run after an installation compiles and reads from a cold disk.
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

if TYPE_CHECKING:
    from warplens.report import Report, Selection


def table(report: Report, selection: Selection, *, by: str = "module", min_percent: float = 0.5) -> pa.Table:
    """Return the summary; MissingData where no import was recorded.

    Args:
        report: the report.
        selection: which part of it.
        by: `module`, `package`, or `process`: modules in each process.
        min_percent: leave out what has less of all Self time.
    """
    one_of("by", by, ("module", "package", "process"))
    package = (lambda name: name.partition(".")[0]) if by == "package" else None
    rows = nested(
        report,
        selection,
        "imports",
        keys=["name"],
        per=["process"] if by == "process" else [],
        renamed=package,
    )
    if not rows.num_rows:
        raise MissingData(f"does not contain Python import data{selection.place(report)}.")
    rows = rows.sort_by([("own", "descending"), ("whole", "descending"), ("name", "ascending")])
    rows = rows.append_column("share", share(rows.column("own")))
    everything = rows.num_rows
    rows = rows.filter(pc.greater_equal(rows.column("share"), min_percent))
    columns = {
        "Self (%)": rows.column("share"),
        "Self (ns)": rows.column("own"),
        "Total (ns)": rows.column("whole"),
        "Imports": rows.column("count"),
        "Failed": rows.column("failed"),
        **located(report, rows),
        "Package" if by == "package" else "Module": rows.column("name"),
    }
    less = everything - rows.num_rows
    left_out = (
        f"{less:,} more with less than {min_percent:g} % of the time; `:min-percent=0` has all."
        if less
        else ""
    )
    return noted(pa.table(columns), left_out, said(report, selection))
