"""Regions inside kernels, for exporters.

Below the stream a row for each launch, then SMs, and warps with their regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.analysis.dictionaries import codes
from warplens.arrays import Int64Array
from warplens.exporters.events import ExportEvents, Kind, Nesting, details, names
from warplens.exporters.rows import NONE, ExportRow, ExportRows
from warplens.exporters.tracks import Tracks, batches, values
from warplens.timeline.index.inside import NEEDED, SLOTS, Insides
from warplens.timeline.names import gpu_label

if TYPE_CHECKING:
    from warplens.report import Report

FEW_LAUNCHES = 32  # that have separate rows; of more, those of a name and stream share theirs
MOST_ROWS = 8_000  # warps beyond are left out: no viewer of traces shows more
LAUNCH = Kind(
    "intrakernel_launches",
    "intrakernel_launch",
    "name",
    details=("buffer_name", "generation", "units", "dropped", "offset", "uncertainty", "merged"),
)
REGION = Kind("intrakernel_events", "intrakernel", "tag", details=("payload", "kind"))
KINDS = (LAUNCH, REGION)
_NEEDED = ("id", "process", "unit", "start", "end")


class InsideTracks(ExportRows):
    """The rows of kernels that time themselves.

    `streams`: those of CUDA, whose stream a launch is below if there is one.

    `above` of the outermost rows counts among the rows of CUDA, that of others among these, whose numbers begin behind those.
    """

    def __init__(self, report: Report, tracks: Tracks, streams: ExportRows) -> None:
        super().__init__(report, tracks)
        self._first = len(streams.rows)
        self._group_of: dict[int, int] = {}
        self.left_out = 0

    @classmethod
    def of(cls, report: Report, tracks: Tracks, streams: ExportRows) -> InsideTracks:
        """Return the rows of a report."""
        rows = cls(report, tracks, streams)
        if report.tables["intrakernel_launches"]:
            rows._fill(report, streams)
        return rows

    def _fill(self, report: Report, streams: ExportRows) -> None:
        launches = report.table("intrakernel_launches")
        self._shares = launches.num_rows > FEW_LAUNCHES
        units = report.table("intrakernel_units", NEEDED["intrakernel_units"])
        self._insides = Insides(launches, units)
        contexts = report.sql(
            "SELECT l.id, k.context FROM intrakernel_launches l JOIN kernels k ON k.id = l.kernel" if report.tables["kernels"] else
            "SELECT 0 AS id, 0 AS context WHERE false"
        ).to_pylist()  # fmt: skip
        context = {row["id"]: row["context"] for row in contexts}
        for row in launches.sort_by("id").to_pylist():
            self._launch(row, context.get(row["id"]), streams)
        self._warps(units)

    def _launch(self, row: dict[str, object], context: int | None, streams: ExportRows) -> None:
        id_, process = int(str(row["id"])), int(str(row["process"]))
        group = self._insides.groups[id_] if self._shares else id_ & 0xFFFFFFFF
        name = f"Inside {row['name'] or 'kernel'}" + ("" if self._shares else f" #{row['generation']}")
        above = None
        if context is not None and row["stream"] is not None:
            above = streams.place("stream", process, context, int(str(row["stream"])))
        device = row["device"]
        full = name if device is None or above is not None else f"{gpu_label(int(str(device)), None)} {name}"
        at = self._put(
            ("inside", process, group, NONE),
            ExportRow(
                name,
                full,
                self._process(process),
                thread=None,
                above=above,
                place=1 << 20,
                gpu=above is not None,
            ),
        )
        self._group_of[id_] = at

    def _warps(self, units: pa.Table) -> None:
        """Put a row for each SM of a launch, and below it one for each warp that it has room for."""
        insides = self._insides
        process = insides.id >> 32
        group = np.array([self._group_of.get(launch, NONE) for launch in insides.launch.tolist()], np.int64)
        keys = np.stack([process, group, insides.sm, insides.warp])
        distinct, which = np.unique(keys, axis=1, return_inverse=True)
        self.left_out = max(distinct.shape[1] - MOST_ROWS, 0)
        rows = np.full(distinct.shape[1], NONE, np.int64)
        for number, (owner, at, place, warp) in enumerate(distinct.T[:MOST_ROWS].tolist()):
            if at == NONE:
                continue
            sm, slot = divmod(place, SLOTS)
            top = self.rows[at]
            on = self._put(
                (f"sm {at}", owner, sm, NONE),
                ExportRow(
                    f"SM {sm}", "", top.process, thread=None, above=at + self._first, place=sm, gpu=top.gpu
                ),
            )
            beside = f" (block {slot + 1} at once)" if slot else ""
            name = f"Warp {warp}{beside}"
            row = ExportRow(
                name,
                f"{top.name} SM {sm} {name}",
                top.process,
                thread=None,
                above=on + self._first,
                place=slot * 64 + warp,
                gpu=top.gpu,
            )
            rows[number] = self._put((f"warp {at} {sm}", owner, slot, warp), row)
        self._row_of_unit = rows[which.reshape(-1)]

    def of_launches(self, ids: Int64Array) -> npt.NDArray[np.int32]:
        """Return the row of each launch."""
        return np.array([self._group_of[id_] for id_ in ids.tolist()], np.int32)

    def of_units(self, ids: Int64Array) -> tuple[npt.NDArray[np.int32], Int64Array]:
        """Return the row of each unit, -1 if it has none, and its block."""
        known = self._insides.id
        if not len(known):
            return np.full(len(ids), NONE, np.int32), np.full(len(ids), NONE, np.int64)
        place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        there = known[place] == ids
        return np.where(there, self._row_of_unit[place], NONE).astype(np.int32), np.where(
            there, self._insides.cta[place], NONE
        )


def inside_events(report: Report, tracks: InsideTracks, *, most: int | None = None) -> Iterator[ExportEvents]:
    """Yield launches, regions and marks (without an end), at most `most` at once.

    Of each row sorted by begin.
    """
    if not tracks.rows:
        return
    for batch in batches(
        report, "intrakernel_launches", ("id", "start", "end", "name", *LAUNCH.details), most=most
    ):
        ids = values(batch, "id")
        none = np.full(len(ids), NONE, np.int64)
        row, start, end = tracks.of_launches(ids), values(batch, "start"), values(batch, "end")
        yield ExportEvents(
            LAUNCH,
            row,
            ids,
            parent=none,
            start=start,
            end=end,
            name=names(LAUNCH, batch),
            details=details(LAUNCH, batch),
            arrow=none,
        )
    nesting = Nesting()
    for batch in batches(report, "intrakernel_events", (*_NEEDED, "tag", *REGION.details), most=most):
        marks = _of_kind(batch, "mark")
        for chosen, nests in ((~marks, nesting), (marks, None)):
            piece = batch.filter(pa.array(chosen))
            row, block = tracks.of_units(values(piece, "unit"))
            piece, row, block = piece.filter(pa.array(row >= 0)), row[row >= 0], block[row >= 0]
            if piece.num_rows:
                yield _regions(piece, row, block, nesting=nests)


def _regions(
    batch: pa.RecordBatch, row: npt.NDArray[np.int32], block: Int64Array, nesting: Nesting | None
) -> ExportEvents:
    ids, start, end = (values(batch, name) for name in ("id", "start", "end"))
    none = np.full(len(ids), NONE, np.int64)
    parent = none.copy()
    nested = ~_of_kind(batch, "asynchronous")  # the others cross what they begin in
    if nesting is not None and nested.any():
        parent[nested] = nesting.parents(
            ids[nested], values(batch, "unit")[nested], start=start[nested], end=end[nested]
        )
    order = np.argsort(start, kind="stable")  # so far they were unit by unit
    batch, row, ids, parent, start, end = (
        batch.take(order),
        row[order],
        ids[order],
        parent[order],
        start[order],
        end[order],
    )
    told = [(name, column) for name, column in details(REGION, batch) if name != "kind"]
    told.append(("block", pa.array(block[order])))
    return ExportEvents(
        REGION,
        row,
        ids,
        parent=parent,
        start=start,
        end=None if nesting is None else end,
        name=names(REGION, batch),
        details=told,
        arrow=none,
    )


def _of_kind(batch: pa.RecordBatch, kind: str) -> npt.NDArray[np.bool_]:
    numbers, texts = codes(batch.column("kind"))
    return np.isin(numbers, [code for code, text in enumerate(texts.to_pylist()) if text == kind])
