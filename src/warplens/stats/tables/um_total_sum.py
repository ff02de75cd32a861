"""Unified Memory Totals Summary.

## What it shows
How much unified memory moved between host and GPUs, and how many page faults there were: one row for each process.

## Columns
- Total HtoD Migration Size, Total DtoH Migration Size (MB): what moved to GPUs and back, in 10^6 bytes.
- Total CPU Page Faults, Total GPU Page Faults: how many.
- Minimum Virtual Address, Maximum Virtual Address: of these events.
- Host, Rank, PID: of the process; each only where the rows differ in it.

## How it is computed
From the rows of `um_events`; with a filter, those that overlap the selected time, with --window those that overlap the window: each with
its whole size. A row that stands for several faults counts each of them.

## Traps
- Migrations from GPU to GPU are not in these columns; cuda_gpu_mem_size_sum has them.
- Faults are there only when they were requested: --cuda-um-cpu-page-faults, --cuda-um-gpu-page-faults.
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
    """Return the summary; MissingData where nothing moved and nothing faulted."""
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
