"""Unified Memory Analysis Summary.

## What it shows
Which addresses of unified memory moved most between host and GPUs, and where page faults were.

## Columns
- Virtual Address: the first one of the events.
- HtoD Migration Size, DtoH Migration Size (MB): what moved to GPUs and back, in 10^6 bytes.
- CPU Page Faults, GPU Page Faults: how many.
- Migration Throughput (MB/s): what moved, divided by the time that the migrations took; empty where nothing moved.
- Host, Rank, PID: of the process; each only where the rows differ in it.

## How it is computed
From the rows of `um_events`, grouped by process and address; with a filter, those that overlap the selected time, each with its whole size.
What moved most comes first, then what faulted most. `:rows=20` shows 20 rows, `:rows=-1` all; else there are 10, and a note says how many
are left out.

## Traps
- An event starts where the driver began to move; two events of one allocation may have two addresses.
- Migrations from GPU to GPU are in no column but the throughput.
- Faults are there only when they were requested: --cuda-um-cpu-page-faults, --cuda-um-gpu-page-faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.errors import MissingData
from warplens.stats.base import noted
from warplens.stats.places import places
from warplens.stats.unified import FAULTS, MOVED, SIZES, TAKEN, address, unified

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = 8  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection, *, rows: int = 10) -> pa.Table:
    """Return the summary; MissingData where nothing moved and nothing faulted.

    Args:
        report: the report.
        selection: which part of it.
        rows: maximum number of rows; -1: all.
    """
    by_address = report.sql(f"""
    SELECT process, address, {SIZES}, {FAULTS}, {MOVED} / nullif({TAKEN}, 0) * 1e9 AS throughput
    FROM {unified(report, selection)} GROUP BY process, address
    ORDER BY {MOVED} DESC NULLS LAST, cpu_faults + gpu_faults DESC, process, address
    """)
    if not by_address.num_rows:
        raise MissingData(f"does not contain CUDA Unified Memory data{selection.place(report)}.")
    shown = by_address if rows < 0 else by_address.slice(0, rows)
    table = pa.table(
        {
            "Virtual Address": address(shown.column("address")),
            "HtoD Migration Size (MB)": shown.column("to_device"),
            "DtoH Migration Size (MB)": shown.column("to_host"),
            "CPU Page Faults": shown.column("cpu_faults"),
            "GPU Page Faults": shown.column("gpu_faults"),
            "Migration Throughput (MB/s)": shown.column("throughput"),
            **places(report, shown.column("process")),
        }
    )
    more = by_address.num_rows - shown.num_rows
    return noted(table, f"{more:,} more addresses; um_sum:rows=-1 has all." if more else "")
