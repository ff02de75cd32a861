"""Collective Operation Summary.

## What it shows
Time and data volume of a framework's collective operations: one row per operation, process group
and size.

## Columns
- Time (%): the row's share of the Total Time of all rows.
- Total Time, Avg, Med, Min, Max, StdDev (ns): statistics of the operations' time on the GPU.
- Instances: number of operations.
- Total (MB), Avg (MB): data per operation in 10^6 bytes: the larger of input and output of the
  rank. Empty if the size is unknown.
- Throughput (MB/s): Total (MB) divided by Total Time (the bandwidth of the algorithm).
- Group, Ranks, Type: the process group, its number of ranks, and the element type, if the framework
  recorded them.
- Name: the operation, e.g. `all_reduce`.

## How it is computed
From the table `collectives`, which traces of PyTorch contain. Operations that overlap the selected
time count with their full duration. The largest total comes first. For recordings with NCCL's own
ranges, see nccl_sum.

## Traps
- A collective lasts until its last rank arrives. Time and throughput therefore include waiting; the
  rule collective_skew separates the two.
- Operations of several groups may run at the same time: the total may exceed the time in which the
  GPU communicated.
- The bytes on a link differ from Total: in a ring of n ranks, each link carries 2 (n-1)/n of the
  size of an all-reduce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import during
from warplens.errors import MissingData
from warplens.stats.base import share
from warplens.stats.sums import MEGABYTE

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; raises MissingData if no collective was recorded."""
    rows = report.sql(
        f"""SELECT name, "group", group_size, type, count(*) AS count, sum(length)::BIGINT AS total, avg(length) AS mean,
                   median(length) AS median, min(length) AS min, max(length) AS max, coalesce(stddev_samp(length), 0.0) AS deviation,
                   sum(bytes)::DOUBLE / {MEGABYTE} AS megabytes, avg(bytes) / {MEGABYTE} AS each,
                   sum(length) FILTER (WHERE bytes IS NOT NULL) AS moving
            FROM (SELECT *, "end" - "start" AS length, greatest(bytes_in, bytes_out) AS bytes FROM collectives
                  WHERE {during(report, selection)}) GROUP BY ALL ORDER BY total DESC, name, "group", type"""
    )
    if not rows.num_rows:
        raise MissingData(f"does not contain collective operations{selection.place(report)}.")
    seconds = pc.divide(pc.cast(rows.column("moving"), pa.float64()), 1e9)
    rate = pc.if_else(pc.greater(seconds, 0), pc.divide(rows.column("megabytes"), seconds), None)
    return pa.table(
        {
            "Time (%)": share(rows.column("total")),
            "Total Time (ns)": rows.column("total"),
            "Instances": rows.column("count"),
            "Avg (ns)": rows.column("mean"),
            "Med (ns)": rows.column("median"),
            "Min (ns)": rows.column("min"),
            "Max (ns)": rows.column("max"),
            "StdDev (ns)": rows.column("deviation"),
            "Total (MB)": rows.column("megabytes"),
            "Avg (MB)": rows.column("each"),
            "Throughput (MB/s)": rate,
            "Group": rows.column("group"),
            "Ranks": rows.column("group_size"),
            "Type": rows.column("type"),
            "Name": rows.column("name"),
        }
    )
