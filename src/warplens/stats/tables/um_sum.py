"""Unified Memory Analysis Summary.

## What it shows
Addresses of unified memory with the most traffic between host and GPUs, and their page faults.

## Columns
- Virtual Address: first address of the events.
- HtoD Migration Size, DtoH Migration Size (MB): data that moved to GPUs, and to the host, in 10^6
  bytes.
- CPU Page Faults, GPU Page Faults: number of faults.
- Migration Throughput (MB/s): data moved divided by the time of the migrations; empty if nothing
  moved.
- Host, Rank, PID: the process. Each is shown only if rows differ in it.

## How it is computed
From the rows of `um_events`, grouped by process and address. With a filter, events that overlap the
selected time count with their full size. The most data comes first, then the most faults.
`:rows=20` prints 20 rows, `:rows=-1` all. The default is 10, and a note says how many rows are left
out.

## Traps
- An event has the address where the driver began to move: two events of one allocation may have two
  addresses.
- Migrations between GPUs appear only in the throughput.
- Faults are recorded only on request: --cuda-um-cpu-page-faults, --cuda-um-gpu-page-faults.
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
    """Return the summary; raises MissingData if nothing moved and nothing faulted.

    Args:
        report: the report.
        selection: the part to use.
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
