"""Collective Operation Summary.

## What it shows
How long the collective operations of a framework took, and how much they moved: one row for each operation, group and size.

## Columns
- Time (%): the row's share of all rows' Total Time. Total Time, Avg, Med, Min, Max, StdDev (ns): of the operations on the GPU.
- Instances: how many. Total (MB), Avg (MB): the larger of what the rank gave and what it got, in 10^6 bytes; empty where it is not known.
- Throughput (MB/s): Total (MB) in Total Time, the algorithm's bandwidth.
- Group, Ranks, Type: the process group, how many ranks it has, and the type of the elements, where the framework told them.
- Name: the operation, e.g. `all_reduce`.

## How it is computed
From the table `collectives`, which traces of PyTorch hold. Operations that overlap the selected time count with their whole length. The
greatest total comes first. Where NCCL's own ranges were recorded instead, see nccl_sum.

## Traps
- A collective waits for the last rank to come: time and throughput are those of the waiting as well. The rule collective_skew parts them.
- Operations of several groups may run side by side: the total may exceed the time in which the GPU communicated.
- The bytes that cross a link are others: a ring of n ranks moves 2 (n-1)/n of an all-reduce's size over each.
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
    """Return the summary; MissingData where no collective was recorded."""
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
