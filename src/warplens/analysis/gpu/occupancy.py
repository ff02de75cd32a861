"""Aggregates CUDA into the columns of a timeline.

API calls by thread, GPU work by stream and kind of copy, GPU utilization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.analysis.gpu.ops import operations
from warplens.analysis.intervals import union
from warplens.analysis.occupancy import Window, cells_of
from warplens.arrays import Int64Array
from warplens.report.quoting import listed, quoted
from warplens.report.selection import overlap

if TYPE_CHECKING:
    from warplens.report.report import Report

# Kernels and graphs belong to a stream; copies of one kind, and memsets, to their device.
_WORK = """(
  SELECT id, process, device, context, stream, NULL::VARCHAR AS what, "start", "end", name FROM kernels
  UNION ALL SELECT id, process, device, context, stream, NULL, "start", "end", 'CUDA graph' || coalesce(' ' || graph, '') FROM graphs
  UNION ALL SELECT id, process, device, NULL, NULL, kind, "start", "end",
                   replace(replace(replace(replace(kind, 'Host', 'H'), 'Device', 'D'), 'Peer', 'P'), '-to-', 'to') FROM memcpys
  UNION ALL SELECT id, process, device, NULL, NULL, 'Memset', "start", "end", 'Memset' FROM memsets
)"""
_COPIES = (
    None,
    "Host-to-Device",
    "Device-to-Host",
    "Device-to-Device",
    "Peer-to-Peer",
    "Memset",
)  # in this order
# As `cells` needs it; the number of the row stands for the thread.
_AS_RANGES = (
    "NULL::BIGINT AS task, 0 AS depth, NULL::VARCHAR AS domain, name AS message, NULL::BIGINT AS color, "
    "false AS unfinished, 'PushPop' AS style"
)


@dataclass(frozen=True)
class GpuRow:
    """A row of GPU work: of a stream, or (`what`) of one kind of copies.

    `number` of operations in the window, `busy`: ns, their sum.
    """

    process: int
    device: int
    context: int | None
    stream: int | None
    what: str | None
    number: int
    busy: int


def api_threads(report: Report, window: Window) -> dict[tuple[int, int], int]:
    """Return the time (ns) of each process and thread in API calls in the window.

    Nested calls count again.
    """
    begin, end = window
    rows = report.sql(
        f"""SELECT process, thread, sum(least("end", {end}) - greatest("start", {begin}))::BIGINT AS busy FROM cuda_api
            WHERE {overlap(begin, end)} GROUP BY ALL ORDER BY ALL"""
    )
    return {(row["process"], row["thread"]): row["busy"] for row in rows.to_pylist()}


def api_cells(report: Report, window: Window, columns: int, threads: Sequence[int]) -> pa.Table:
    """Return a row per column of each thread's API calls, as `occupancy.cells` does.

    Calls within calls are left out.
    """
    source = f"""(SELECT id, process, thread, "start", "end", {_AS_RANGES} FROM cuda_api
                  WHERE {overlap(*window)} AND thread IN ({listed(threads)})
                  QUALIFY coalesce("end" > max("end") OVER (PARTITION BY thread ORDER BY "start", "end" DESC
                                                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true))"""
    return cells_of(report, source, window, columns=columns, only="")


def gpu_rows(report: Report, window: Window) -> list[GpuRow]:
    """Return the rows of GPU work in the window, by process and device: streams, then copies."""
    begin, end = window
    rows = report.sql(
        f"""SELECT process, device, context, stream, what, count(*) AS number,
                   sum(least("end", {end}) - greatest("start", {begin}))::BIGINT AS busy
            FROM {_WORK} WHERE {overlap(begin, end)} GROUP BY ALL"""
    )
    return sorted((GpuRow(**row) for row in rows.to_pylist()), key=order)


def gpu_cells(report: Report, window: Window, columns: int, rows: Sequence[GpuRow]) -> pa.Table:
    """Return a row per column of each of `rows`, as `occupancy.cells` does.

    `thread` is the position of the row.
    """
    places = ", ".join(
        f"({index}, {row.process}, {row.device}, {_number(row.context)}, {_number(row.stream)}, {quoted(row.what or '')})"
        for index, row in enumerate(rows)
    )
    source = f"""(SELECT w.id, w.process, r.place::BIGINT AS thread, w."start", w."end", {_AS_RANGES}
                  FROM {_WORK} w JOIN (VALUES {places}) r(place, process, device, context, stream, what)
                  ON w.process = r.process AND w.device = r.device AND coalesce(w.context, -1) = r.context
                  AND coalesce(w.stream, -1) = r.stream AND coalesce(w.what, '') = r.what)"""
    return cells_of(report, source, window, columns=columns, only="")


def utilization(
    report: Report, window: Window, columns: int
) -> dict[tuple[int, int], npt.NDArray[np.float64]]:
    """Return for each GPU of a process the busy share (0 to 1) of each column.

    Kernels, copies, memsets, graphs.
    """
    begin, end = window
    rows = report.sql(
        f"""SELECT process, device, greatest("start", {begin}) AS first, least("end", {end}) AS last FROM {operations()}
            WHERE {overlap(begin, end)} AND device IS NOT NULL ORDER BY process, device, first"""
    )
    process, device, first, last = (
        np.asarray(rows.column(name).to_numpy(), np.int64) for name in rows.column_names
    )
    # The first row of each GPU, and the number of rows as the last edge.
    edges = np.flatnonzero(
        (np.diff(process, prepend=-1, append=-1) != 0) | (np.diff(device, prepend=-1, append=-1) != 0)
    )
    share_of = {}
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        share_of[int(process[low]), int(device[low])] = shares(
            *union(first[low:high], last[low:high]), window, columns
        )
    return share_of


def shares(start: Int64Array, end: Int64Array, window: Window, columns: int) -> npt.NDArray[np.float64]:
    """Return the share of each column that disjoint, sorted intervals cover."""
    begin, finish = window
    edges = begin + np.arange(columns + 1, dtype=np.float64) * ((finish - begin) / columns)
    # how much lies before each edge goes straight up within an interval and stays between two
    sums = np.cumsum(end - start)
    before = (
        np.interp(
            edges,
            np.column_stack((start, end)).ravel(),
            np.column_stack((sums - (end - start), sums)).ravel(),
        )
        if len(sums)
        else edges * 0
    )
    return np.asarray(np.clip(np.diff(before) / ((finish - begin) / columns), 0, 1), np.float64)


def order(row: GpuRow) -> tuple[int, ...]:
    """Return the sort key of rows: process, device, streams before copies."""
    known = _COPIES.index(row.what) if row.what in _COPIES else len(_COPIES)
    return row.process, row.device, known, _number(row.context), _number(row.stream)


def _number(value: int | None) -> int:
    return -1 if value is None else value
