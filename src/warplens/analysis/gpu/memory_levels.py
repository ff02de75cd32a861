"""GPU memory over time: CUDA's allocations by the program, tensors of the framework's allocator."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

SERIES = ("CUDA", "tensors", "reserved")
"""`CUDA`: what the process got from CUDA; `tensors`: what tensors have; `reserved`: what the framework's allocator has."""

_STEP = "CASE operation WHEN 'allocate' THEN bytes WHEN 'free' THEN -bytes ELSE 0 END"
# Where totals are not recorded, they are counted from the first row.
# Totals are by kind of memory, and the level adds up all kinds. So each row counts its difference
# to the row before it of its kind: totals [4, 6] of one kind and [3] of another are the steps +4,
# +2, +3.
_CUDA = f"""
SELECT process, coalesce(device, -1) AS device, "start",
       coalesce(sum(step) OVER (PARTITION BY process, device ORDER BY "start", id), 0)::BIGINT AS value
FROM (SELECT *, coalesce(total - lag(total) OVER (PARTITION BY process, device, kind ORDER BY "start", id), total, {_STEP}) AS step
      FROM gpu_memory WHERE operation IN ('allocate', 'free') AND coalesce(kind, '') NOT IN ('Pinned', 'Pageable')) ORDER BY ALL
"""
_TENSORS = """
SELECT process, coalesce(device, -1) AS device, "start",
       coalesce({column}, sum(bytes) OVER (PARTITION BY process, device ORDER BY "start", id))::BIGINT AS value
FROM tensor_memory WHERE device IS NOT NULL{where} ORDER BY process, device, "start", id
"""
_QUERIES = {
    "CUDA": _CUDA,
    "tensors": _TENSORS.format(column="allocated", where=""),
    "reserved": _TENSORS.format(column="reserved", where=" AND reserved IS NOT NULL"),
}
# Of each address, the last thing that happened to it.
_HELD = {
    "CUDA": """
SELECT bytes, range FROM (
  SELECT m.bytes, m.operation = 'allocate' AS taken, a.range,
         row_number() OVER (PARTITION BY m.address ORDER BY m."start" DESC, m.id DESC) AS place
  FROM gpu_memory m LEFT JOIN cuda_api a ON m.api = a.id
  WHERE m.process = $process AND coalesce(m.device, -1) = $device AND m."start" <= $time AND m.operation IN ('allocate', 'free')
    AND coalesce(m.kind, '') NOT IN ('Pinned', 'Pageable')
) WHERE place = 1 AND taken
""",
    "tensors": """
SELECT bytes, range FROM (
  SELECT *, row_number() OVER (PARTITION BY address ORDER BY "start" DESC, id DESC) AS place FROM tensor_memory
  WHERE process = $process AND device = $device AND "start" <= $time
) WHERE place = 1 AND bytes > 0
""",
}


@dataclass(frozen=True)
class MemoryLevel:
    """One of SERIES of one device (-1: not known) of a process: `value` bytes from `time` on."""

    process: int
    device: int
    series: str
    time: Int64Array
    value: Int64Array

    def highest(self, begin: Int64Array, end: Int64Array) -> Int64Array:
        """Return the peak in each stretch [begin, end), from the level at its begin on. Before the first row 0."""
        first, last = (
            np.searchsorted(self.time, begin, side="right"),
            np.searchsorted(self.time, end, side="left"),
        )
        before = np.where(first > 0, self.value[np.maximum(first - 1, 0)], 0)
        # reduceat gives the element itself where a stretch is empty: those have what was before.
        padded = np.append(self.value, np.iinfo(np.int64).min)
        edges = np.column_stack((first, np.maximum(last, first))).ravel()
        inside = np.maximum.reduceat(padded, edges)[::2] if len(edges) else before
        return np.where(last > first, np.maximum(inside, before), before)

    def peak(self, begin: int, end: int) -> tuple[int, int]:
        """Return when there was most in [begin, end), and how much."""
        inside = (self.time >= begin) & (self.time < end)
        before = int(np.searchsorted(self.time, begin, side="left")) - 1
        at, most = begin, int(self.value[before]) if before >= 0 else 0
        if inside.any():
            place = int(np.flatnonzero(inside)[np.argmax(self.value[inside])])
            if int(self.value[place]) > most:
                at, most = int(self.time[place]), int(self.value[place])
        return at, most


def levels(report: Report) -> list[MemoryLevel]:
    """Return what was recorded, in order of process and device; nothing if no memory was."""
    sortable = []
    for place, (series, text) in enumerate(_QUERIES.items()):
        if not report.tables["gpu_memory" if series == "CUDA" else "tensor_memory"]:
            continue
        rows = report.sql(text)
        process, device, time, value = (
            np.asarray(rows.column(name).to_numpy(), np.int64)
            for name in ("process", "device", "start", "value")
        )
        # Rows come by process and device: a series begins where either changes. -1 is not a process; -2 is no device (-1 means not known).
        edges = np.flatnonzero((np.diff(process, prepend=-1) != 0) | (np.diff(device, prepend=-2) != 0))
        for first, last in pairwise([*edges.tolist(), len(time)]):
            own = slice(first, last)
            sortable.append(
                (
                    int(process[first]),
                    int(device[first]),
                    place,
                    MemoryLevel(
                        int(process[first]), int(device[first]), series, time=time[own], value=value[own]
                    ),
                )
            )
    return [level for *_, level in sorted(sortable, key=lambda row: row[:3])]


def held(report: Report, level: MemoryLevel, time: int) -> pa.Table:
    """Return the memory held at a time by the range that allocated it, the most first.

    Columns: range (`domain:name`; null: none), bytes, allocations.
    """
    text = f"""SELECT CASE WHEN r.id IS NOT NULL THEN coalesce(r.domain, '') || ':' || coalesce(r.message, '') END AS "range",
               sum(h.bytes)::BIGINT AS bytes, count(*) AS allocations
               FROM ({_HELD["CUDA" if level.series == "CUDA" else "tensors"]}) h LEFT JOIN nvtx_ranges r ON h.range = r.id
               GROUP BY ALL ORDER BY bytes DESC, 1"""
    return report.sql(text, {"process": level.process, "device": level.device, "time": time})
