"""Exact statistics of regions by tag and place, streamed through the native group sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.distinct import distinct
from warplens.analysis.ranges.durations import Durations
from warplens.report.row_groups import Reader, RowGroup, each, row_groups

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches, Units
    from warplens.arrays import Int64Array
    from warplens.report.report import Report

_FIGURES = ("count", "total", "median", "p99", "min", "max", "stddev")


def region_sums(
    report: Report, of: IntrakernelLaunches, part: Int64Array, *, units: Units | None = None
) -> pa.Table:
    """Return a row per part, kind and tag of the regions in launches, marks too, in no order.

    Args:
        report: the report.
        of: the launches.
        part: number of the part (from 0; -1: left out) that each launch, or with `units` each unit, belongs to.
        units: what `part` is of.

    Returns:
        part, kind, tag, then in ns count, total, median, p99 (nearest rank), min, max, stddev (of a sample; 0 for one).
    """
    reader = Reader("intrakernel_events")
    width = int(part.max()) + 1 if len(part) else 0
    column = "launch" if units is None else "unit"
    with Durations() as durations:

        def read_group(group: RowGroup) -> None:
            rows = reader.read(group, ["start", "end", column, "kind", "tag"])
            ids = np.asarray(rows.column(column).to_numpy(), np.int64)
            place = (of if units is None else units).place(ids)
            mine = np.append(part, -1)[place]
            if len(mine) and mine.min() < 0:
                rows, mine = rows.filter(pa.array(mine >= 0)), mine[mine >= 0]
            if rows.num_rows:
                used, code = distinct(mine, width)
                where = pa.DictionaryArray.from_arrays(
                    pa.array(code), pa.array([str(number) for number in used.tolist()])
                )
                keys = {"style": rows.column("kind"), "domain": where, "message": rows.column("tag")}
                durations.add(pa.table({"start": rows.column("start"), "end": rows.column("end"), **keys}))

        groups = row_groups(report, "intrakernel_events", of.window)
        if groups and width:
            each(groups, read_group)
        statistics = durations.result({"p99": 0.99})
    number = pa.array([int(text) for text in statistics.column("domain").to_pylist()], pa.int64())
    figures = {name: statistics.column(name) for name in _FIGURES}
    return pa.table(
        {"part": number, "kind": statistics.column("style"), "tag": statistics.column("message"), **figures}
    )
