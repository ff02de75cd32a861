"""Unified Memory Totals Summary.

## What it shows
Total traffic of unified memory between host and GPUs, and number of page faults: one row per
process.

## Columns
- Total HtoD Migration Size, Total DtoH Migration Size (MB): data that moved to GPUs, and to the
  host, in 10^6 bytes.
- Total CPU Page Faults, Total GPU Page Faults: number of faults.
- Minimum Virtual Address, Maximum Virtual Address: of these events.
- Host, Rank, PID: the process. Each is shown only if rows differ in it.

## How it is computed
From the rows of `um_events`. With a filter, events that overlap the selected time count with their
full size; with --window, events that overlap the window. A row that stands for several faults
counts each of them.

## Traps
- Migrations between GPUs are missing here; cuda_gpu_mem_size_sum has them.
- Faults are recorded only on request: --cuda-um-cpu-page-faults, --cuda-um-gpu-page-faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.errors import MissingData
from warplens.stats.places import places
from warplens.stats.unified import FAULTS, SIZES, address, unified

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = 9  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; raises MissingData if nothing moved and nothing faulted."""
    rows = report.sql(f"""
    SELECT process, {SIZES}, {FAULTS}, min(address) AS least, max(address) AS greatest
    FROM {unified(report, selection)} GROUP BY process ORDER BY process
    """)
    if not rows.num_rows:
        raise MissingData(f"does not contain CUDA Unified Memory data{selection.place(report)}.")
    return pa.table(
        {
            "Total HtoD Migration Size (MB)": rows.column("to_device"),
            "Total DtoH Migration Size (MB)": rows.column("to_host"),
            "Total CPU Page Faults": rows.column("cpu_faults"),
            "Total GPU Page Faults": rows.column("gpu_faults"),
            "Minimum Virtual Address": address(rows.column("least")),
            "Maximum Virtual Address": address(rows.column("greatest")),
            **places(report, rows.column("process")),
        }
    )
