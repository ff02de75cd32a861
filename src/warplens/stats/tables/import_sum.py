"""Python Import Summary.

## What it shows
Import time of each module, with and without the modules that it imports.

## Columns
- Self (%), Self (ns): without the modules that it imported; the percentage is of all rows.
- Total (ns): with them.
- Imports: number of imports; more than one if several processes import the module. Failed: imports
  that raised an exception.
- Host, Rank, PID: with `:by=process`; each is shown only if rows differ in it.
- Module; with `:by=package` Package: the name up to its first dot.

## How it is computed
From the table `imports`, which has the first import of each module. Self is the time of an import
without the imports directly inside it. The Total of a package counts each moment once: imports
inside it belong to the outermost. With --filter-time, imports that overlap the time count. With
--filter-nvtx, imports count whose thread was in such a range. Rows below `:min-percent` of all Self
time are left out. The largest Self comes first.

## Traps
- Self adds up to the time spent importing, Total does not. Total is what you save without the
  module, if nothing else needs its imports.
- Modules that were loaded before the recording began are missing.
- The first run after an installation compiles bytecode and reads from a cold disk.
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
    """Return the summary; raises MissingData if no import was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `module`, `package`, or `process`: modules of each process.
        min_percent: leave out rows below this share of all Self time.
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
