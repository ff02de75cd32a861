"""Exact statistics of kernels by GPU and name, streamed through the native group sums.

SQL takes four times as long for the medians.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.ranges.durations import Durations
from warplens.report.row_groups import Reader, RowGroup, each, row_groups

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_FEW = 1 << 12


def kernel_durations(report: Report, selection: Selection, name: str) -> pa.Table:
    """Return a row per process, device and kernel, by `name`: the column `demangled` or `name` of `kernels`.

    Columns: process, device, operation, and in ns count, total, median, min, max, stddev (of a sample; 0 for one). Kernels that overlap
    the selection count with their whole length.
    """
    window = selection.window(report)
    reader = Reader("kernels", window)
    with Durations() as durations:

        def read_group(group: RowGroup) -> None:
            rows = reader.read(group, ["start", "end", "process", "device", name])
            if rows.num_rows:
                keys = {
                    "style": pa.nulls(rows.num_rows, pa.string()),
                    "domain": _places(rows),
                    "message": rows.column(name),
                }
                durations.add(pa.table({"start": rows.column("start"), "end": rows.column("end"), **keys}))

        groups = row_groups(report, "kernels", window)
        if groups:
            each(groups, read_group)
        statistics = durations.result()
    places = [text.split() for text in statistics.column("domain").to_pylist()]
    process, device = (
        pa.array([int(place[column]) for place in places], kind)
        for column, kind in ((0, pa.int64()), (1, pa.int32()))
    )
    figures = {
        column: statistics.column(column) for column in ("count", "total", "median", "min", "max", "stddev")
    }
    return pa.table(
        {"process": process, "device": device, "operation": statistics.column("message"), **figures}
    )


def _places(rows: pa.Table) -> pa.DictionaryArray:
    """Return `process device` of each row, as few texts."""
    columns = [np.asarray(rows.column(name).to_numpy()) for name in ("process", "device")]
    edges = [(int(column.min()), int(column.max())) for column in columns]
    if (edges[0][1] - edges[0][0] + 1) * (
        edges[1][1] - edges[1][0] + 1
    ) <= _FEW:  # numbers of devices are small, processes come one by one
        known = [list(range(low, high + 1)) for low, high in edges]
        codes = [(column - low).astype(np.int32) for column, (low, _) in zip(columns, edges, strict=True)]
    else:
        known, codes = [], []
        for column in columns:
            values, code = np.unique(column, return_inverse=True)
            known.append(values.tolist())
            codes.append(code.astype(np.int32))
    texts = [f"{process} {device}" for process in known[0] for device in known[1]]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes[0] * np.int32(len(known[1])) + codes[1]), pa.array(texts)
    )
