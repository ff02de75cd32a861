"""Unified Memory CPU Page Faults Summary.

## What it shows
Which code of the host touched unified memory that was on a GPU, and how often: the places to prefetch from, or to keep the data away from.

## Columns
- CPU Page Faults: how many.
- CPU Instruction Address: the function, or the address, that touched the page; `[unknown]` where it was not recorded.
- Host, Rank, PID: of the process; each only where the rows differ in it.

## How it is computed
From the rows of `um_events` that are page faults of the CPU; with a filter, those that overlap the selected time, with --window those that
overlap the window. The most faults come first.

## Traps
- Faults are there only when they were requested (--cuda-um-cpu-page-faults); who touched the page only in recordings of nsys.
- One fault may bring many pages along: few faults can mean much data. um_sum has the bytes.
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
    """Return the summary; MissingData where the CPU faulted nowhere."""
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
