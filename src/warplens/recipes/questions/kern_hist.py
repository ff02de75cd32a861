"""How the durations of each kernel are distributed over the launches of all ranks, as a heat map.

## What it asks
Of each kernel (`:name=gemm`: those with this in their names) the share of its launches with each duration,
in percent, and the durations below which half and 99 % of its launches are.

## How it is computed
Launches are counted by duration, with four bins for each doubling. The 32 kernels with the greatest
totals over all ranks are drawn, each rank counts its 256.
`Med from` and `P99 from` are where the bin of the median and of the 99th percentile begins.

## Traps
Two humps are two kinds of launches: other sizes, or a kernel that waits for other ranks. A narrow hump on
most ranks and a wide one on some is a rank to look at: `kern_pace:name=…` compares the ranks.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted
from warplens.recipes.base import REPORT, Answer, HeatMap, Summary
from warplens.report import Report

_PER_DOUBLING = 4
_COUNTED, _DRAWN = 256, 32


def part(report: Report, *, name: str = "") -> Summary:
    """Count the launches of one report.

    Args:
        report: one rank's.
        name: part of the names of the kernels; default: all.
    """
    rows = report.table("kernels", ["name", "start", "end"]).drop_null()
    names = rows.column("name").cast(pa.string())
    if name:
        chosen = pc.match_substring(names, name)
        rows, names = rows.filter(chosen), names.filter(chosen)
    if not rows.num_rows:
        raise MissingData(
            f"does not contain a kernel with {name!r} in its name." if name else "does not contain kernels."
        )
    length = np.maximum(rows.column("end").to_numpy() - rows.column("start").to_numpy(), 1)
    bins = np.floor(np.log2(length) * _PER_DOUBLING).astype(np.int64)
    counts = pa.table({"name": names, "bin": bins, "length": length}).group_by(["name", "bin"])
    counts = counts.aggregate([("length", "count"), ("length", "sum")]).rename_columns(
        ["name", "bin", "launches", "total"]
    )
    kept = _greatest(counts, _COUNTED)
    counts = counts.filter(pc.is_in(counts.column("name"), value_set=kept))
    return {"counts": counts.sort_by([("name", "ascending"), ("bin", "ascending")])}


def answer(summary: Summary, *, name: str = "") -> Answer:
    """Add up the counts of all ranks."""
    rows = summary["counts"]
    kernels = _greatest(rows, rows.num_rows).to_pylist()
    place = {kernel: row for row, kernel in enumerate(kernels)}
    first = pc.min(rows.column("bin")).as_py()
    bins = rows.column("bin").to_numpy() - first
    counts: Int64Array = np.zeros((len(kernels), int(bins.max()) + 1), np.int64)
    of = np.array([place[kernel] for kernel in rows.column("name").to_pylist()])
    np.add.at(counts, (of, bins), rows.column("launches").to_numpy())
    total = np.zeros(len(kernels), np.int64)
    np.add.at(total, of, rows.column("total").to_numpy())
    launches = counts.sum(axis=1)
    edges = np.floor(2.0 ** ((first + np.arange(counts.shape[1])) / _PER_DOUBLING)).astype(np.int64)
    share = counts.cumsum(axis=1) / launches[:, None]
    ranks = np.bincount(
        [
            place[kernel]
            for kernel, _ in set(
                zip(rows.column("name").to_pylist(), rows.column(REPORT).to_pylist(), strict=True)
            )
        ],
        minlength=len(kernels),
    )
    table = pa.table(
        {
            "Total (ns)": total,
            "Launches": launches,
            "Reports": ranks,
            "Avg (ns)": total / launches,
            "Med from (ns)": edges[(share >= 0.5).argmax(axis=1)],
            "P99 from (ns)": edges[(share >= 0.99).argmax(axis=1)],
            "Name": kernels,
        }
    )
    shown = HeatMap(
        kernels[:_DRAWN],
        edges.tolist(),
        100.0 * counts[:_DRAWN] / launches[:_DRAWN, None],
        down="Kernel",
        across="From (ns)",
        value="Launches (%)",
        ends=[f"{count:,}" for count in launches[:_DRAWN].tolist()],
    )
    reports = len(set(rows.column(REPORT).to_pylist()))
    return Answer(
        [
            f"{counted(int(launches.sum()), 'launch')} of {counted(len(kernels), 'kernel')} on {counted(reports, 'report')}."
        ],
        maps={"map": shown},
        tables={"kernels": table},
        facts={"launches": int(launches.sum()), "kernels": len(kernels)},
    )


def _greatest(rows: pa.Table, count: int) -> pa.Array:
    """Return the names with the greatest totals, the greatest first."""
    totals = rows.group_by("name").aggregate([("total", "sum")])
    order = totals.sort_by([("total_sum", "descending"), ("name", "ascending")])
    return order.column("name").slice(0, count).combine_chunks()
