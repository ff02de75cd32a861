"""Exact statistics of kernels by GPU and name, streamed through the native group sums: SQL takes four times as long for the medians."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpline.query.durations import Durations
from warpline.query.row_groups import Reader, RowGroup, each, row_groups

if TYPE_CHECKING:
    from warpline.query.report import Report
    from warpline.query.selection import Selection


def kernel_durations(report: Report, selection: Selection, name: str) -> pa.Table:
    """Return a row per process, device and kernel, by `name`: the column `demangled` or `name` of `kernels`.

    Columns: process, device, operation, and in ns count, total, median, min, max, stddev (of a sample; 0 for one). Kernels that overlap
    the selection count with their whole length.
    """
    window = selection.window(report)
    reader = Reader("kernels", window)
    with Durations() as durations:

        def one(group: RowGroup) -> None:
            rows = reader.read(group, ["start", "end", "process", "device", name])
            if rows.num_rows:
                keys = {"style": pa.nulls(rows.num_rows, pa.string()), "domain": _places(rows), "message": rows.column(name)}
                durations.add(pa.table({"start": rows.column("start"), "end": rows.column("end"), **keys}))

        groups = row_groups(report, "kernels", window)
        if groups:
            each(groups, one)
        found = durations.result()
    places = [text.split() for text in found.column("domain").to_pylist()]
    process, device = (pa.array([int(place[column]) for place in places], kind) for column, kind in ((0, pa.int64()), (1, pa.int32())))
    figures = {column: found.column(column) for column in ("count", "total", "median", "min", "max", "stddev")}
    return pa.table({"process": process, "device": device, "operation": found.column("message"), **figures})


def _places(rows: pa.Table) -> pa.DictionaryArray:
    """Return `process device` of each row, as few texts."""
    number = np.zeros(rows.num_rows, np.int64)
    texts = [""]
    for name in ("process", "device"):
        coded = rows.column(name).combine_chunks().dictionary_encode()
        number = number * len(coded.dictionary) + np.asarray(coded.indices.to_numpy(), np.int64)
        texts = [f"{text} {value}" for text in texts for value in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(pc.cast(pa.array(number), pa.int32()), pa.array(texts))
