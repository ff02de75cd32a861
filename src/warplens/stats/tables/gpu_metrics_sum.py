"""GPU Metrics Summary.

## What it shows
Values of the GPUs' own counters: utilization, memory, power, clocks, temperature, …; one row per
GPU and metric.

## Columns
- Samples: number of readings.
- Avg, Med, Min, Max, StdDev: of the readings. StdDev is the sample standard deviation (n-1), 0 for
  a single value.
- Unit: unit of the row's values.
- Host: only if rows differ in it. GPU: its number, as in nvidia-smi. Metric.

## How it is computed
From the rows of `gpu_metrics`; with a filter or --window, readings in the selected time.

## Traps
- The counters describe the whole device, including other programs.
- `GPU Utilization` is the share of time in which any kernel ran, however small: a GPU at 100 % may
  be nearly empty. `SM Active` says more.
- Readings are far apart, and most are means over that interval: short peaks do not show.
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
    """Return the summary; raises MissingData if no metric was recorded."""
    rows = report.sql(_ROWS.format(inside=at(report, selection)))
    if not rows.num_rows:
        raise MissingData(f"does not contain GPU metrics data{selection.place(report)}.")
    return rows if len(pc.unique(rows.column("Host"))) > 1 else rows.drop_columns("Host")
