"""GPU Memory Summary.

## What it shows
The peak of the memory that the program allocated from CUDA, when it was reached, and what was still
allocated at the end: one row per process, GPU and kind of memory.

## Columns
- Peak (MB): most memory allocated at once, in 10^6 bytes. Peak At (ns): when, since the start of
  the report.
- End (MB): memory still allocated at the end.
- Allocations, Frees: number of calls. Allocated (MB): sum of all allocations. Largest (MB): the
  largest single one.
- Pool Peak (MB): most memory held by a pool of stream-ordered memory, used or not; only if there
  are pools.
- Host, Rank, PID: the process. Each is shown only if rows differ in it. Device: `name (number)`;
  empty for host memory.
- Kind: `Device`, `Pinned`, `Managed`, …

## How it is computed
From the rows of `gpu_memory`, whose `total` is the process's memory after each operation. With a
filter or --window, the operations in the selected time. With a filter, Peak includes memory that
was allocated before.

## Traps
- Frameworks keep memory for reuse: PyTorch's caching allocator takes large blocks from CUDA, so
  this is not the memory of tensors.
- Allocations from before the recording are missing, and so is the memory of libraries and of the
  context. nvidia-smi shows more.
- End is not a leak: the driver frees everything when the process ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import at
from warplens.errors import MissingData
from warplens.stats.places import device_names, places
from warplens.stats.sums import MEGABYTE

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# Where an importer knows no totals, they are counted from the first row.
# steps: +bytes or -bytes per row. held: the total after each row, as recorded or as a running sum. chosen: with the total before it.
# inside: the rows of the selection, numbered. The peak may be the total before the first of them: then it is at the selection's begin.
_ROWS = """
WITH steps AS (
  SELECT *, CASE operation WHEN 'allocate' THEN bytes WHEN 'free' THEN -bytes ELSE 0 END AS step
  FROM gpu_memory WHERE operation IN ('allocate', 'free')
), held AS (
  SELECT *, coalesce(total, sum(step) OVER (PARTITION BY process, device, kind ORDER BY "start", id)::BIGINT) AS held FROM steps
), chosen AS (
  SELECT *, lag(held) OVER (PARTITION BY process, device, kind ORDER BY "start", id) AS before FROM held
), inside AS (SELECT *, row_number() OVER (PARTITION BY process, device, kind ORDER BY "start", id) AS number FROM chosen WHERE {inside})
SELECT process, device, kind,
       greatest(max(held), {before}) AS peak,
       CASE WHEN {before} >= max(held) THEN {begin} ELSE min_by("start", (-held, "start")) END AS peak_at,
       max_by(held, number) AS last,
       count(*) FILTER (operation = 'allocate') AS allocations, count(*) FILTER (operation = 'free') AS frees,
       coalesce(sum(bytes) FILTER (operation = 'allocate'), 0)::BIGINT AS allocated, max(bytes) FILTER (operation = 'allocate') AS largest,
       max(pool_size) AS pool
FROM inside GROUP BY process, device, kind ORDER BY process, device NULLS LAST, peak DESC, kind
"""


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; raises MissingData if no memory was recorded."""
    window = selection.window(report)
    before, begin = "0", "NULL::BIGINT"
    if window is not None:
        before, begin = "coalesce(first(before ORDER BY number), 0)", str(window[0])
    rows = report.sql(_ROWS.format(inside=at(report, selection), before=before, begin=begin))
    if not rows.num_rows:
        raise MissingData(f"does not contain CUDA memory usage data{selection.place(report)}.")
    process, device = rows.column("process"), rows.column("device")
    sizes = {
        "Peak (MB)": "peak",
        "End (MB)": "last",
        "Allocated (MB)": "allocated",
        "Largest (MB)": "largest",
        "Pool Peak (MB)": "pool",
    }
    in_megabytes = {
        name: pc.divide(pc.cast(rows.column(column), pa.float64(), safe=False), MEGABYTE)
        for name, column in sizes.items()
    }
    columns = {
        "Peak (MB)": in_megabytes["Peak (MB)"],
        "Peak At (ns)": pc.subtract(rows.column("peak_at"), report.origin),
        "End (MB)": in_megabytes["End (MB)"],
        "Allocations": rows.column("allocations"),
        "Frees": rows.column("frees"),
        "Allocated (MB)": in_megabytes["Allocated (MB)"],
        "Largest (MB)": in_megabytes["Largest (MB)"],
        **(
            {"Pool Peak (MB)": in_megabytes["Pool Peak (MB)"]}
            if rows.column("pool").null_count < rows.num_rows
            else {}
        ),
        **places(report, process),
        "Device": device_names(report, process, device),
        "Kind": pc.coalesce(pc.cast(rows.column("kind"), pa.string()), pa.scalar("unknown")),
    }
    return pa.table(columns)
