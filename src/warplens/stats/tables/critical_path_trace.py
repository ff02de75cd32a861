"""Critical Path Trace.

## What it shows
The critical path step by step: each entry waited for the one before it, from the first to the last
of the selected time.

## Columns
- Start (ns): time since the start of the report. Duration (ns): each entry begins where the one
  before ends.
- Kind: `CPU`, `CUDA API`, `kernel`, `communication`, `memcpy`, `memset`, `graph`, `launch latency`,
  `stream gap`, `sync return`, `full queue`, as in critical_path.
- Rank, PID: shown only if processes differ. TID, Thread: of host entries. Device, Stream: of GPU
  work.
- Name: kernel, copy or call; for `CPU` the innermost NVTX range, `domain:name`.

## How it is computed
As in critical_path: from the last moment backwards, always to the dependency that was satisfied
last; then in order of time. Time of the host itself is divided where its NVTX range changes.

## Traps
- If two dependencies end at the same moment, the table follows one of them. The path is then one of
  several.
- One line per entry: millions make a long text. Use `:step=3`, --filter-time or --filter-nvtx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.critical_path.shares import CATEGORIES
from warplens.stats.base import noted
from warplens.stats.critical import find, numbers_or_null, path_notes, placed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, step: int = -1) -> pa.Table:
    """Return the path; raises MissingData if there is no CUDA data.

    Args:
        report: the report.
        selection: the part to use.
        step: number of the only training step to use, from 0.
    """
    path = find(report, selection, step)
    shares = path.all.take(path.on)
    places = pa.table(
        {name: numbers_or_null(getattr(shares, name)) for name in ("process", "thread", "device", "stream")}
    )
    columns = {
        "Start (ns)": pa.array(shares.start - report.origin),
        "Duration (ns)": pa.array(shares.length),
        "Kind": pa.array(np.array(CATEGORIES)[shares.category].tolist(), pa.string()),
        **placed(report, places),
        "Name": pa.array([shares.names[code] for code in shares.name.tolist()], pa.string()),
    }
    return noted(pa.table(columns), *path_notes(path))
