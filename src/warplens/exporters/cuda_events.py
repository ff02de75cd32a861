"""CUDA events for exporters, piece by piece, each with its row, name, details and arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.analysis.dictionaries import codes
from warplens.exporters.arrows import Arrows
from warplens.exporters.cuda_tracks import CudaTracks
from warplens.exporters.events import ExportEvents, Kind, Nesting, details, names
from warplens.exporters.tracks import batches, values
from warplens.model.tables import TABLES
from warplens.timeline.names import direction

if TYPE_CHECKING:
    from warplens.report import Report

_NEEDED = ("id", "process", "thread", "context", "stream", "start", "end", "api")
_GRAPH = ("graph", "graph_node")
_SIZES = tuple(f"{what}_{axis}" for what in ("grid", "block", "cluster") for axis in "xyz")


API = Kind("cuda_api", "cuda_api", "name", details=("api", "correlation", "result"))
KINDS = (
    Kind(
        "kernels",
        "cuda_kernel",
        "name",
        details=(
            *(
                "demangled",
                "correlation",
                *_SIZES,
                "registers",
                "static_shared",
                "dynamic_shared",
                "shared_executed",
            ),
            *("local_per_thread", "local_total", "launch_type", *_GRAPH),
        ),
    ),
    Kind(
        "memcpys",
        "cuda_memcpy",
        "kind",
        details=(
            *(
                "kind",
                "bytes",
                "source_kind",
                "destination_kind",
                "source_device",
                "destination_device",
                "asynchronous",
                "copies",
            ),
            *("correlation", *_GRAPH),
        ),
        called=lambda kind: f"Memcpy {direction(kind)}",
    ),
    Kind(
        "memsets",
        "cuda_memset",
        "memory_kind",
        details=("bytes", "value", "memory_kind", "correlation", *_GRAPH),
        fixed="Memset",
    ),
    Kind("graphs", "cuda_graph", "graph", details=("graph", "graph_exec", "correlation"), fixed="CUDA graph"),
    Kind(
        "cuda_events",
        "cuda_event",
        "event",
        details=("event", "event_sync", "correlation"),
        fixed="CUDA event",
    ),
    Kind(
        "syncs",
        "cuda_sync",
        "kind",
        details=("kind", "context", "stream", "event", "event_sync", "correlation"),
        called=lambda kind: f"{kind} synchronize",
    ),
    Kind(
        "um_events",
        "cuda_um",
        "kind",
        details=("device", "source", "destination", "address", "bytes", "faults", "cause"),
    ),
    Kind(
        "collectives",
        "collective",
        "name",
        details=(
            "group",
            "group_size",
            "sequence",
            "bytes_in",
            "bytes_out",
            "elements_in",
            "elements_out",
            "type",
            "peers",
        ),
    ),
    Kind("overhead", "cuda_overhead", "kind", details=("name", "correlation")),
    API,
)


def events(report: Report, tracks: CudaTracks, *, most: int | None = None) -> Iterator[ExportEvents]:
    """Yield all events, at most `most` at once; of each row sorted by begin."""
    if not tracks.rows:
        return
    arrows = Arrows.of(report)
    counts = report.tables
    for kind in KINDS:
        nesting = Nesting() if kind is API else None
        own = {*_NEEDED, kind.name, *kind.details}
        wanted = [column.name for column in TABLES[kind.table].columns if column.name in own]
        for batch in batches(report, kind.table, wanted, most=most) if counts[kind.table] else ():
            if kind.table == "cuda_events":
                batch = batch.filter(batch.column("start").is_valid())
            if batch.num_rows:
                yield _events(kind, batch, tracks, arrows=arrows, nesting=nesting)


def _events(
    kind: Kind, batch: pa.RecordBatch, tracks: CudaTracks, arrows: Arrows, nesting: Nesting | None
) -> ExportEvents:
    ids, start = values(batch, "id"), values(batch, "start")
    end = values(batch, "end") if "end" in batch.schema.names else None
    if kind is API:
        arrow = arrows.begins(ids)
    elif kind.table in ("kernels", "memcpys", "memsets", "graphs"):
        arrow = arrows.ends(values(batch, "api", -1))
    else:
        arrow = np.full(len(ids), -1, np.int64)
    row = _rows(kind, batch, tracks)
    parent = np.full(len(ids), -1, np.int64)
    if nesting is not None and end is not None:
        parent = nesting.parents(ids, row, start=start, end=end)
    told = details(kind, batch)
    if kind.table == "memcpys" and end is not None:
        took = end - start
        rate = values(batch, "bytes") / np.maximum(took, 1)
        told.append(("throughput GB/s", pa.array(rate, mask=took <= 0)))
    return ExportEvents(
        kind,
        row,
        ids,
        parent=parent,
        start=start,
        end=end,
        name=names(kind, batch),
        details=told,
        arrow=arrow,
        starts=kind is API,
    )


def _rows(kind: Kind, batch: pa.RecordBatch, tracks: CudaTracks) -> npt.NDArray[np.int32]:
    process, none = values(batch, "process"), np.full(batch.num_rows, -1, np.int64)
    if kind.table in ("cuda_api", "overhead"):
        return tracks.find(kind.table, process, values(batch, "thread", -1), none)
    if kind.table in ("syncs", "um_events", "collectives"):
        return tracks.find(kind.table, process, none, none)
    context, stream = values(batch, "context"), values(batch, "stream")
    if kind.table != "memcpys":
        return tracks.find(kind.table, process, context, stream)
    row = np.empty(batch.num_rows, np.int32)
    numbers, texts = codes(batch.column("kind"))
    for number in np.unique(numbers).tolist():
        own = numbers == number
        row[own] = tracks.find(
            f"memcpys {texts[number].as_py() if number >= 0 else None}",
            process[own],
            context[own],
            stream[own],
        )
    return row
