"""What CUDA did, as exporters need it: piece by piece, each event with its row, name, details and arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpline.exporters.arrows import Arrows
from warpline.exporters.cuda_tracks import CudaTracks, direction
from warpline.exporters.tracks import batches, values
from warpline.model.tables import TABLES
from warpline.query.native import codes
from warpline.spool import desk

if TYPE_CHECKING:
    from warpline.query import Report

_Ids = npt.NDArray[np.int64]
_NEEDED = ("id", "process", "thread", "context", "stream", "start", "end", "api")
_GRAPH = ("graph", "graph_node")
_SIZES = tuple(f"{what}_{axis}" for what in ("grid", "block", "cluster") for axis in "xyz")


@dataclass(frozen=True)
class Kind:
    """A table of events: what a row is called (a column, rewritten by `called`, or a text), and the columns that are its details."""

    table: str
    category: str
    name: str
    details: tuple[str, ...]
    called: Callable[[str], str] | None = None
    fixed: str | None = None


@dataclass(frozen=True)
class Events:
    """Some events of one kind. `end` is None of instants; `parent` and `arrow` are ids, -1: none; arrows end at all but API calls."""

    kind: Kind
    row: npt.NDArray[np.int32]
    id: _Ids
    parent: _Ids
    start: _Ids
    end: _Ids | None
    name: pa.Array
    details: list[tuple[str, pa.Array]]
    arrow: _Ids


API = Kind("cuda_api", "cuda_api", "name", ("api", "correlation", "result"))
KINDS = (
    Kind(
        "kernels",
        "cuda_kernel",
        "name",
        (
            *("demangled", "correlation", *_SIZES, "registers", "static_shared", "dynamic_shared", "shared_executed"),
            *("local_per_thread", "local_total", "launch_type", *_GRAPH),
        ),
    ),
    Kind(
        "memcpys",
        "cuda_memcpy",
        "kind",
        (
            *("bytes", "source_kind", "destination_kind", "source_device", "destination_device", "asynchronous", "copies"),
            *("correlation", *_GRAPH),
        ),
        lambda kind: f"Memcpy {direction(kind)}",
    ),
    Kind("memsets", "cuda_memset", "memory_kind", ("bytes", "value", "memory_kind", "correlation", *_GRAPH), fixed="Memset"),
    Kind("graphs", "cuda_graph", "graph", ("graph", "graph_exec", "correlation"), fixed="CUDA graph"),
    Kind("cuda_events", "cuda_event", "event", ("event", "event_sync", "correlation"), fixed="CUDA event"),
    Kind("syncs", "cuda_sync", "kind", ("context", "stream", "event", "event_sync", "correlation"), lambda kind: f"{kind} synchronize"),
    Kind("um_events", "cuda_um", "kind", ("device", "source", "destination", "address", "bytes", "faults", "cause")),
    Kind("overhead", "cuda_overhead", "kind", ("name", "correlation")),
    API,
)


def events(report: Report, tracks: CudaTracks, *, most: int | None = None) -> Iterator[Events]:
    """Yield all events, at most so many at once; of each row sorted by begin."""
    if not tracks.rows:
        return
    arrows = Arrows(report)
    counts = report.tables
    for kind in KINDS:
        nesting = _Nesting() if kind is API else None
        own = {*_NEEDED, kind.name, *kind.details}
        wanted = [column.name for column in TABLES[kind.table].columns if column.name in own]
        for batch in batches(report, kind.table, wanted, most=most) if counts[kind.table] else ():
            if kind.table == "cuda_events":
                batch = batch.filter(batch.column("start").is_valid())
            if batch.num_rows:
                yield _events(kind, batch, tracks, arrows, nesting)


def _events(kind: Kind, batch: pa.RecordBatch, tracks: CudaTracks, arrows: Arrows, nesting: _Nesting | None) -> Events:
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
        parent = nesting.parents(ids, row, start, end)
    details = [(name.replace("_", " "), batch.column(name)) for name in kind.details if batch.column(name).null_count < batch.num_rows]
    if kind.table == "memcpys" and end is not None:
        took = end - start
        rate = values(batch, "bytes") / np.maximum(took, 1)
        details.append(("throughput GB/s", pa.array(rate, mask=took <= 0)))
    return Events(kind, row, ids, parent, start, end, _names(kind, batch), details, arrow)


def _rows(kind: Kind, batch: pa.RecordBatch, tracks: CudaTracks) -> npt.NDArray[np.int32]:
    process, none = values(batch, "process"), np.full(batch.num_rows, -1, np.int64)
    if kind.table in ("cuda_api", "overhead"):
        return tracks.find(kind.table, process, values(batch, "thread", -1), none)
    if kind.table in ("syncs", "um_events"):
        return tracks.find(kind.table, process, none, none)
    context, stream = values(batch, "context"), values(batch, "stream")
    if kind.table != "memcpys":
        return tracks.find(kind.table, process, context, stream)
    found = np.empty(batch.num_rows, np.int32)
    numbers, texts = codes(batch.column("kind"))
    for number in np.unique(numbers).tolist():
        own = numbers == number
        found[own] = tracks.find(f"memcpys {texts[number].as_py() if number >= 0 else None}", process[own], context[own], stream[own])
    return found


def _names(kind: Kind, batch: pa.RecordBatch) -> pa.Array:
    if kind.fixed is not None:
        return pa.DictionaryArray.from_arrays(np.zeros(batch.num_rows, np.int32), pa.array([kind.fixed]))
    if kind.called is None:
        return batch.column(kind.name)
    numbers, texts = codes(batch.column(kind.name))
    written = pa.array([kind.called(text) for text in texts.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers < 0), written)


class _Nesting:
    """Finds the call that encloses each call (the runtime calls the driver), across the borders of batches."""

    def __init__(self) -> None:
        self._open: tuple[_Ids, _Ids, _Ids, _Ids] = (np.empty(0, np.int64),) * 4

    def parents(self, ids: _Ids, row: npt.NDArray[np.int32], start: _Ids, end: _Ids) -> _Ids:
        before = len(self._open[0])
        columns = [np.concatenate(pair) for pair in zip(self._open, (ids, row.astype(np.int64), start, end), strict=True)]
        _, parent = desk.nest(columns[1], columns[2], columns[3])
        found = np.where(parent >= 0, columns[0][parent], -1)[before:]
        still = columns[3] > start[-1]
        self._open = (columns[0][still], columns[1][still], columns[2][still], columns[3][still])
        return found
