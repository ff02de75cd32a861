"""NVTX GPU Projection Summary.

## What it shows
GPU time of each NVTX range, from the start of the first operation that was launched in it to the
end of the last: one row per name and style.

## Columns
- Range: `domain:name`; ranges of the default domain print `:name`. Style: PushPop or StartEnd.
- Total Proj Time (ns): sum of the projected durations. Total Range Time (ns): sum of the ranges'
  own durations.
- Range Instances: number of ranges with GPU work.
- Proj Avg, Med, Min, Max, StdDev (ns): of the projected durations. StdDev is the sample standard
  deviation (n-1), 0 for a single value.
- Total GPU Ops, Avg GPU Ops: kernels, copies, memsets and graphs launched in them; in total and per
  range.
- Avg Range Lvl: average number of ranges with GPU work around it. Avg Num Child: average number
  directly inside it.

## How it is computed
From the rows of nvtx_gpu_proj_trace. Ranges without GPU work do not count. The largest total comes
first.

## Traps
- Totals do not add up: the projection of an outer range contains those of its inner ranges.
- A projected duration is not busy time: it may contain gaps and other work.
- If coroutines take turns on a thread, a range includes operations that other coroutines launched.
- Several processes and GPUs work at the same time: a total may exceed the wall time of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.durations import Durations
from warplens.stats.projections import projections

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_SUMS = ("range_time", "operations", "level", "number")


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; raises MissingData if no range launched anything."""
    rows = projections(report, selection)
    name, style = (rows.column(column).combine_chunks() for column in ("name", "style"))
    key = pc.add(
        pc.multiply(pc.cast(style.indices, pa.int64()), len(name.dictionary)), name.indices
    ).dictionary_encode()
    numbers = pa.DictionaryArray.from_arrays(key.indices, pc.cast(key.dictionary, pa.string()))
    nothing = pa.nulls(len(key), pa.string())
    with Durations() as durations:
        spans = {
            "start": rows.column("first"),
            "end": rows.column("last"),
            "style": nothing,
            "domain": nothing,
            "message": numbers,
        }
        durations.add(pa.table(spans))
        figures = durations.result()
    values = {"key": key.indices, "range_time": pc.subtract(rows.column("end"), rows.column("start"))}
    sums = (
        pa.table(values | {column: rows.column(column) for column in _SUMS[1:]})
        .group_by("key")
        .aggregate([(n, "sum") for n in _SUMS])
    )
    codes = pc.cast(figures.column("message"), pa.int64())
    sums = sums.take(
        pc.index_in(
            pc.index_in(codes, value_set=key.dictionary), value_set=sums.column("key").combine_chunks()
        )
    )
    both = pa.table(
        {column: figures.column(column) for column in ("count", "total", "median", "min", "max", "stddev")}
        | {column: sums.column(column) for column in sums.column_names}
        | {"message": name.dictionary.take(_rest(codes, len(name.dictionary)))}
        | {"style": style.dictionary.take(pc.divide(codes, len(name.dictionary)).combine_chunks())}
    ).sort_by([("total", "descending"), ("message", "ascending"), ("style", "ascending")])

    def each(name: str) -> pa.ChunkedArray:
        return pc.divide(
            pc.cast(both.column(name), pa.float64(), safe=False), pc.cast(both.column("count"), pa.float64())
        )

    return pa.table(
        {
            "Range": both.column("message"),
            "Style": both.column("style"),
            "Total Proj Time (ns)": both.column("total"),
            "Total Range Time (ns)": both.column("range_time_sum"),
            "Range Instances": both.column("count"),
            "Proj Avg (ns)": each("total"),
            "Proj Med (ns)": both.column("median"),
            "Proj Min (ns)": both.column("min"),
            "Proj Max (ns)": both.column("max"),
            "Proj StdDev (ns)": both.column("stddev"),
            "Total GPU Ops": both.column("operations_sum"),
            "Avg GPU Ops": each("operations_sum"),
            "Avg Range Lvl": each("level_sum"),
            "Avg Num Child": each("number_sum"),
        }
    )


def _rest(numbers: pa.ChunkedArray, by: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, by), by)).combine_chunks()
