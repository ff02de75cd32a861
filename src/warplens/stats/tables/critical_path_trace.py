"""Critical Path Trace.

## What it shows
The critical path itself: the things that waited for each other, one after the other, from the first to the last of the selected time.

## Columns
- Start (ns): from the begin of the report. Duration (ns): each begins where the one before ends.
- Kind: `CPU`, `CUDA API`, `kernel`, `communication`, `memcpy`, `memset`, `graph`, `launch latency`, `stream gap`, `sync return`,
  `full queue`, as in critical_path.
- Rank, PID: where processes differ. TID, Thread: of the host. Device, Stream: of GPU work.
- Name: of the kernel, copy or call; of `CPU` the innermost NVTX range, `domain:name`.

## How it is computed
As critical_path: from the last point back along what decided when each point came, then turned round. A stretch of the host's own time is
cut where its NVTX range changes.

## Traps
- Where two things end at once, one of them is taken: the path is then one of several.
- One line per thing: millions make a long text. Take `:step=3`, --filter-time or --filter-nvtx.
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
    """Return the path; MissingData where there is no CUDA data.

    Args:
        report: the report.
        selection: which part of it.
        step: number of the training step to look at alone, from 0.
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
