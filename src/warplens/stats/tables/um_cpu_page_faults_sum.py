"""Unified Memory CPU Page Faults Summary.

## What it shows
Host code that touched unified memory on a GPU, and how often. Prefetch the data there, or keep it
away from that code.

## Columns
- CPU Page Faults: number of faults.
- CPU Instruction Address: the function, or the address, that touched the page; `[unknown]` if it
  was not recorded.
- Host, Rank, PID: the process. Each is shown only if rows differ in it.

## How it is computed
From the CPU page faults in `um_events`. With a filter, faults that overlap the selected time; with
--window, those that overlap the window. The most faults come first.

## Traps
- Faults are recorded only on request (--cuda-um-cpu-page-faults). Only recordings of nsys have the
  code that touched the page.
- One fault may move many pages: few faults can mean much data. um_sum has the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.errors import MissingData
from warplens.stats.places import places
from warplens.stats.unified import unified

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = 10  # its place among the tables that `warplens stats` prints unasked, as in nsys


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; raises MissingData if the CPU faulted nowhere."""
    rows = report.sql(f"""
    SELECT process, coalesce(instruction, '[unknown]') AS place, sum(coalesce(faults, 1))::BIGINT AS faults
    FROM {unified(report, selection)} WHERE kind = 'CPU page fault' GROUP BY ALL ORDER BY faults DESC, process, place
    """)
    if not rows.num_rows:
        raise MissingData(
            f"does not contain CUDA Unified Memory CPU page faults data{selection.place(report)}."
        )
    return pa.table(
        {
            "CPU Page Faults": rows.column("faults"),
            **places(report, rows.column("process")),
            "CPU Instruction Address": rows.column("place"),
        }
    )
