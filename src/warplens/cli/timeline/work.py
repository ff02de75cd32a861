"""CUDA calls and GPU work in the terminal timeline: from the index where the report is large, else in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.analysis.gpu import occupancy
from warplens.analysis.gpu.occupancy import GpuRow
from warplens.timeline.lanes import Lane, Lanes
from warplens.timeline.names import direction

if TYPE_CHECKING:
    from warplens.analysis.occupancy import Window
    from warplens.report import Report
    from warplens.timeline.index import Cells

Rows = list[dict[str, Any]]
_MEMSET = "Memset"
_ON_GPU = ("kernels", "graphs", "memory_rows", "memsets")


class Work:
    """What CUDA did, asked in SQL: see `analysis.gpu.occupancy`, whose tables are lists of rows here."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def api_cells(self, window: Window, columns: int, threads: Sequence[int]) -> Rows:
        """Return the cells of the calls of each thread."""
        rows: Rows = occupancy.api_cells(self.report, window, columns, threads=threads).to_pylist()
        return rows

    def gpu_rows(self, window: Window) -> list[GpuRow]:
        """Return the rows of GPU work that have something in the window."""
        return occupancy.gpu_rows(self.report, window)

    def gpu_cells(self, window: Window, columns: int, rows: Sequence[GpuRow]) -> Rows:
        """Return the cells of rows of GPU work; `thread` is the position of the row."""
        cells: Rows = occupancy.gpu_cells(self.report, window, columns, rows=rows).to_pylist()
        return cells

    def utilization(self, window: Window, columns: int) -> dict[tuple[int, int], npt.NDArray[np.float64]]:
        """Return of each GPU of a process the share of each column in which it did anything."""
        return occupancy.utilization(self.report, window, columns)


class IndexedWork(Work):
    """The same from the index.

    A row is made of the tracks of a stream (kernels, graphs), of copies of a kind, or of memsets.
    """

    def __init__(
        self,
        report: Report,
        lanes: Lanes,
        rows: dict[GpuRow, list[Lane]],
        gpus: dict[tuple[int, int], list[Lane]],
    ) -> None:
        super().__init__(report)
        self._lanes, self._rows, self._gpus = lanes, rows, gpus

    @classmethod
    def of(cls, report: Report, lanes: Lanes) -> IndexedWork:
        """Return the work in an index: the tracks of each row, and of each GPU of a process."""
        rows: dict[GpuRow, list[Lane]] = {}
        gpus: dict[tuple[int, int], list[Lane]] = {}
        for lane in lanes.all:
            if lane.layer in _ON_GPU and lane.key.get("device") is not None:
                rows.setdefault(_row(lane), []).append(lane)
                gpus.setdefault((lane.process, lane.key["device"]), []).append(lane)
        return cls(report, lanes, rows, gpus=gpus)

    def api_cells(self, window: Window, columns: int, threads: Sequence[int]) -> Rows:
        """Return the cells of the calls of each thread: those of lane 0 are within no other."""
        calls = {lane.key.get("thread"): lane for lane in self._lanes.of_layer("cuda_api")}
        rows: Rows = []
        for thread in threads:
            lane = calls.get(thread)
            if lane is not None:
                rows += self._cells([lane], self._lanes.cells([lane], window, columns, 0), thread)
        return rows

    def gpu_rows(self, window: Window) -> list[GpuRow]:
        """Return the rows of GPU work that have something in the window.

        `busy` counts what ran at once on a track once.
        """
        loads = self._lanes.busy([lane.number for row in self._rows.values() for lane in row], *window)
        rows = []
        for row, own in self._rows.items():
            number = sum(loads[lane.number][1] for lane in own)
            busy = sum(round(loads[lane.number][0] * (window[1] - window[0])) for lane in own)
            if number:
                rows.append(replace(row, number=number, busy=busy))
        return sorted(rows, key=occupancy.order)

    def gpu_cells(self, window: Window, columns: int, rows: Sequence[GpuRow]) -> Rows:
        """Return the cells of rows of GPU work.

        Those of copies and memsets are called as the row is.
        """
        every: Rows = []
        for place, row in enumerate(rows):
            own, name = (
                self._rows[replace(row, number=0, busy=0)],
                None if row.what is None else direction(row.what),
            )
            every += self._cells(
                own, self._lanes.cells(own, window, columns, alike=name is not None), place, name=name
            )
        return every

    def utilization(self, window: Window, columns: int) -> dict[tuple[int, int], npt.NDArray[np.float64]]:
        """Return of each GPU of a process the share of each column in which it did anything."""
        shares = {}
        for place, own in self._gpus.items():
            cells = self._lanes.cells(own, window, columns, alike=True)
            if len(cells.column):
                shares[place] = np.zeros(columns)
                shares[place][cells.column] = cells.covered
        return shares

    def _cells(self, row: list[Lane], cells: Cells, place: int, name: str | None = None) -> Rows:
        names, rows = row[0].index.names, []
        own = (cells.column, cells.busy, cells.number, cells.begun, cells.row, cells.name)
        for column, busy, number, begun, id_, text in zip(*(each.tolist() for each in own), strict=True):
            top = {
                "domain": None,
                "message": names.text(text) if name is None else name,
                "id": row[0].process << 32 | id_,
                "color": None,
            }
            at = {"thread": place, "depth": 0, "col": column, "busy": busy, "number": number}
            rows.append({**at, "top": {**top, "unfinished": False, "begun": begun}})
        return rows


def _row(lane: Lane) -> GpuRow:
    """Return the row that a track is part of."""
    process, device, context, stream = (
        lane.process,
        lane.key["device"],
        lane.key.get("context"),
        lane.key.get("stream"),
    )
    if lane.layer in ("kernels", "graphs"):
        return GpuRow(process, device, context, stream=stream, what=None, number=0, busy=0)
    what = _MEMSET if lane.layer == "memsets" else lane.key.get("kind")
    return GpuRow(process, device, None, stream=None, what=what, number=0, busy=0)
