"""The operations of each GPU as arrays, the input of interval algebra over many millions of operations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.analysis.gpu.kernel_classes import CLASSES, class_of
from warplens.arrays import Int64Array
from warplens.report.row_groups import RowGroup, RowGroupReader, groups_of, threads
from warplens.storage.memory import give_back

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

Codes = npt.NDArray[np.uint8]
Place = tuple[int, int, int | None]  # process, device, stream

# What an operation is: the class of a kernel, or one of these. A staged copy has pageable memory at one end: its call waits for it.
COPY, STAGED, MEMSET, MIGRATION, GRAPH = range(len(CLASSES), len(CLASSES) + 5)
KINDS: tuple[str, ...] = (*CLASSES, "copy", "staged copy", "memset", "migration", "graph")
_COMMUNICATION = CLASSES.index("communication")
_OTHER = CLASSES.index("other")

# What an operation counts as where all time is parted. A graph that was recorded as a whole is compute: nobody knows what is in it.
COMPUTE, COMMUNICATION, MEMORY = range(3)
ROLES: Codes = np.array(
    [
        COMMUNICATION if n == _COMMUNICATION else MEMORY if COPY <= n <= MIGRATION else COMPUTE
        for n in range(len(KINDS))
    ],
    np.uint8,
)

_FEW = 1 << 14  # numbers that are looked up in a table
_FAR = 1 << 61  # ns: differences of what lies within still fit into 64 bits
_WHERE = ("process", "device", "stream", "start", "end")
_COLUMNS = {
    "kernels": (*_WHERE, "api", "demangled"),
    "memcpys": (*_WHERE, "api", "source_kind", "destination_kind"),
    "memsets": (*_WHERE, "api"),
    "graphs": (*_WHERE, "api"),
    "um_events": ("process", "device", "start", "end", "kind"),
}
_MIGRATIONS = pa.array(["HtoD", "DtoH", "DtoD"])


@dataclass
class WorkTrack:
    """The operations of one stream (or GPU) in order of start: arrays of one length.

    `kind`: in KINDS; `api`: id, -1 for none.
    """

    start: Int64Array
    end: Int64Array
    kind: Codes
    api: Int64Array

    def __len__(self) -> int:
        return len(self.start)

    def chosen(self, which: npt.NDArray[np.bool_] | Int64Array) -> WorkTrack:
        """Return some of it, by a mask or by positions."""
        return WorkTrack(self.start[which], self.end[which], self.kind[which], api=self.api[which])


@dataclass
class GpuWork:
    """One GPU of one process, with what ran on each of its streams, in pieces of any order.

    None is the stream of what has none.
    """

    process: int
    device: int
    parts: dict[int | None, list[WorkTrack]]

    @property
    def streams(self) -> dict[int | None, WorkTrack]:
        """The operations of each stream, in order."""
        whole = all(len(pieces) == 1 for pieces in self.parts.values())
        for stream, pieces in self.parts.items():
            self.parts[stream] = [joined(pieces)]
        if not whole:
            give_back()
        return {stream: pieces[0] for stream, pieces in self.parts.items()}

    def together(self) -> WorkTrack:
        """Return what ran on all streams, one after the other: in no order."""
        return concatenated([piece for pieces in self.parts.values() for piece in pieces])

    def merged(self) -> WorkTrack:
        """Return what ran on all streams together, in order."""
        return ordered(self.together())


def gpus(report: Report, selection: Selection, *, classes: bool = True) -> Iterator[GpuWork]:
    """Yield the GPUs that did something in the selection, process by process; times are cut to it.

    Kernels, copies, memsets, graphs that were recorded as a whole, and migrations of unified memory. One part of the report is in memory
    at a time. `classes`: whether to classify kernels; else all are `other`.
    """
    columns = {**_COLUMNS, "kernels": _COLUMNS["kernels"] if classes else _COLUMNS["graphs"]}
    window = selection.window(report)
    groups: dict[int, list[tuple[str, RowGroup]]] = {}
    for table in _COLUMNS:
        for piece in report.pieces(table) if report.tables[table] else ():
            for group in groups_of(piece):
                if group.may_overlap(window) and group.may_be_chosen():
                    groups.setdefault(piece.part, []).append((table, group))
    readers = {table: RowGroupReader(table, window) for table in _COLUMNS}

    def read_group(item: tuple[str, RowGroup]) -> dict[Place, WorkTrack]:
        table, group = item
        return _split(table, readers[table].read(group, columns[table]), window)

    for wanted in groups.values():
        tracks: dict[Place, list[WorkTrack]] = {}
        with ThreadPoolExecutor(min(threads(), len(wanted))) as pool:
            for pieces in pool.map(read_group, wanted):
                for place, track in pieces.items():
                    tracks.setdefault(place, []).append(track)
        give_back()  # what row groups were decoded in: hundreds of MB of a long recording
        of: dict[tuple[int, int], list[Place]] = {}
        for place in sorted(
            tracks, key=lambda place: (place[0], place[1], -1 if place[2] is None else place[2])
        ):
            of.setdefault(place[:2], []).append(place)
        for (process, device), places in of.items():
            yield GpuWork(process, device, {place[2]: tracks.pop(place) for place in places})


def joined(parts: Sequence[WorkTrack]) -> WorkTrack:
    """Return several tracks as one, in order."""
    return ordered(concatenated(parts))


def concatenated(parts: Sequence[WorkTrack]) -> WorkTrack:
    """Return several tracks one behind the other."""
    if len(parts) == 1:
        return parts[0]
    return WorkTrack(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "kind", "api"))
    )


def ordered(track: WorkTrack) -> WorkTrack:
    """Return a track in order of start."""
    order = order_of(track.start)
    return track if order is None else track.chosen(order)


def order_of(start: Int64Array) -> Int64Array | None:
    """Return the positions in order of time; None if they are in order already."""
    return np.argsort(start, kind="stable") if len(start) > 1 and np.any(start[1:] < start[:-1]) else None


def _split(table: str, rows: pa.Table, window: tuple[int, int] | None) -> dict[Place, WorkTrack]:
    """Part the rows of a row group by where they ran."""
    if table == "um_events":
        rows = rows.filter(pc.is_in(pc.cast(rows.column("kind"), pa.string()), value_set=_MIGRATIONS))
        rows = rows.append_column("stream", pa.nulls(rows.num_rows, pa.int64()))
    rows = rows.filter(pc.is_valid(rows.column("device"))) if rows.column("device").null_count else rows
    if not rows.num_rows:
        return {}
    low, high = (-_FAR, _FAR) if window is None else window
    start, end = (
        np.clip(np.asarray(rows.column(name).to_numpy(), np.int64), low, high) for name in ("start", "end")
    )
    api = _filled(rows, "api") if "api" in rows.column_names else np.full(len(start), -1, np.int64)
    whole = WorkTrack(start, np.maximum(end, start), _kinds(table, rows), api=api)
    code, places = _places(rows)
    if len(places) == 1:
        return {places[0]: whole}
    order = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[order], np.arange(len(places) + 1))
    return {
        place: whole.chosen(order[edges[number] : edges[number + 1]]) for number, place in enumerate(places)
    }


def _places(rows: pa.Table) -> tuple[npt.NDArray[np.int16] | Int64Array, list[Place]]:
    """Number the combinations of process, device and stream."""
    known = [
        name for name in ("process", "device", "stream") if not rows.column(name).null_count
    ]  # migrations have no stream
    columns = [np.asarray(rows.column(name).to_numpy(), np.int64) for name in known]
    edges = [(int(column.min()), int(column.max())) for column in columns]
    # A dense number for (process, device, stream) by mixed radix, where the product of the spans is small; else by np.unique.
    shape = [high - low + 1 for low, high in edges]
    if math.prod(shape) <= _FEW:
        number = np.zeros(rows.num_rows, np.int64)
        for column, (low, _), size in zip(columns, edges, shape, strict=True):
            number = number * size + (column - low)
        kept = np.flatnonzero(np.bincount(number))
        code = np.zeros(math.prod(shape), np.int64)
        code[kept] = np.arange(len(kept))
        code = code[number]
        values = [index + low for index, (low, _) in zip(np.unravel_index(kept, shape), edges, strict=True)]
    else:
        combinations, code = np.unique(np.stack(columns), axis=1, return_inverse=True)
        code, values = code.reshape(-1), list(combinations)
    places = [(*place, None)[:3] for place in zip(*(value.tolist() for value in values), strict=True)]
    return code.astype(np.int16) if len(places) < 1 << 15 else code, places


def _kinds(table: str, rows: pa.Table) -> Codes:
    count = rows.num_rows
    if table == "kernels" and "demangled" not in rows.column_names:
        return np.full(count, _OTHER, np.uint8)
    if table == "kernels":
        coded = rows.column("demangled").combine_chunks()
        coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
        known = np.array(
            [CLASSES.index(class_of(name or "")) for name in coded.dictionary.to_pylist()] + [_OTHER],
            np.uint8,
        )
        return np.asarray(known[np.asarray(pc.fill_null(coded.indices, -1).to_numpy(), np.int64)], np.uint8)
    if table == "memcpys":
        ends = [
            pc.fill_null(pc.equal(pc.cast(rows.column(name), pa.string()), "Pageable"), False)
            for name in _COLUMNS[table][-2:]
        ]
        return np.where(pc.or_(*ends).to_numpy(), np.uint8(STAGED), np.uint8(COPY))
    return np.full(count, {"memsets": MEMSET, "graphs": GRAPH, "um_events": MIGRATION}[table], np.uint8)


def _filled(rows: pa.Table, name: str) -> Int64Array:
    return np.asarray(pc.fill_null(rows.column(name), -1).to_numpy(), np.int64)
