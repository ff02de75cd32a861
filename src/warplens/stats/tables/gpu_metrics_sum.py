"""GPU Metrics Summary.

## What it shows
What the GPUs' own counters said: utilization, memory, power, clocks, temperature, …; one row per GPU and metric.

## Columns
- Samples: how many readings.
- Avg, Med, Min, Max, StdDev: of the readings; StdDev is that of a sample (n-1), 0 for one.
- Unit: of the row's values.
- Host: only where the rows differ in it. GPU: its number, as nvidia-smi has it. Metric.

## How it is computed
From the rows of `gpu_metrics`; with a filter or --window, readings in the selected time.

## Traps
- The counters are those of whole devices: other programs are in them, too.
- `GPU Utilization` says how often some kernel ran, however small; a GPU at 100 % may be nearly empty. `SM Active` says more.
- Readings are far apart, most counters are means over that time: short peaks do not show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import at
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_ROWS = """
SELECT count(*) AS "Samples", avg(value) AS "Avg", median(value) AS "Med", min(value) AS "Min", max(value) AS "Max",
       coalesce(stddev_samp(value), 0.0) AS "StdDev", unit AS "Unit", host AS "Host", gpu AS "GPU", metric AS "Metric"
FROM gpu_metrics WHERE {inside} AND isfinite(value) GROUP BY host, gpu, metric, unit ORDER BY host, gpu, metric, unit
"""


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; MissingData where no metric was recorded."""
    rows = report.sql(_ROWS.format(inside=at(report, selection)))
    if not rows.num_rows:
        raise MissingData(f"does not contain GPU metrics data{selection.place(report)}.")
    return rows if len(pc.unique(rows.column("Host"))) > 1 else rows.drop_columns("Host")
