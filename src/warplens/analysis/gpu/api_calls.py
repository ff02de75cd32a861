"""Looks up many calls of CUDA by their ids, and finds those that wait for the GPU.

Row groups at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.intervals import union
from warplens.arrays import Int64Array
from warplens.report.row_groups import Reader, RowGroup, row_groups

if TYPE_CHECKING:
    from warplens.report.report import Report

# Waits by its name, copies without being asynchronous, or frees: that waits for the device, too.
_WAITS = re.compile(
    r"Synchronize|^(cuda|cu|hip)Memcpy(?!.*Async)|^(cuda|hip)(Free|FreeHost|FreeArray|HostUnregister)$|^cuMem(Free|FreeHost|HostUnregister)(_v2)?$"
)


def synchronizes(name: str) -> bool:
    """Return whether a function of CUDA or HIP waits for the GPU, by its name.

    For example `cudaStreamSynchronize`.
    """
    return _WAITS.search(name) is not None


@dataclass
class Called:
    """Calls as arrays of one length.

    `known` is False for those that are not in the report, whose thread is -1.
    """

    known: npt.NDArray[np.bool_]
    thread: Int64Array
    start: Int64Array
    end: Int64Array


class ApiCalls:
    """The calls of a report.

    Ids come in stretches next to one another, so the row group that was read last is kept.
    """

    def __init__(self, report: Report) -> None:
        self._groups = [
            (group, group.edges("id"), group.edges("process")) for group in row_groups(report, "cuda_api")
        ]
        self._reader = Reader("cuda_api")
        self._last: tuple[RowGroup, tuple[Int64Array, ...]] | None = None

    def find(self, ids: Int64Array) -> Called:
        """Return the calls with these ids, which are sorted; -1 is none."""
        count = len(ids)
        called = Called(
            np.zeros(count, bool),
            np.full(count, -1, np.int64),
            start=np.zeros(count, np.int64),
            end=np.zeros(count, np.int64),
        )
        for group, edges, _ in self._groups if count and ids[-1] >= 0 else ():
            low, high = (
                (0, count)
                if edges is None
                else np.searchsorted(ids, [edges[0], edges[1] + 1 if edges[1] < 1 << 62 else edges[1]])
            )
            if high > low:
                known, thread, start, end = self._read(group)
                # The ids asked for in this row group are the run [low, high); those that the group lacks drop out by comparison.
                place = np.searchsorted(known, ids[low:high])
                place[place == len(known)] = 0
                right = np.flatnonzero(known[place] == ids[low:high]) if len(known) else np.empty(0, np.int64)
                place, right = place[right], right + low
                called.known[right], called.thread[right] = True, thread[place]
                called.start[right], called.end[right] = start[place], end[place]
        return called

    def waits(self, process: int, also: Int64Array) -> dict[int, tuple[Int64Array, Int64Array]]:
        """Return when each thread of a process was in calls that wait for the GPU.

        Disjoint, sorted starts and ends.

        `also`: ids of calls that are known to, whatever they are called; sorted.
        """
        more = self.find(also)
        parts = [(more.thread[more.known], more.start[more.known], more.end[more.known])]
        for group, _, edges in self._groups:
            if edges is None or edges[0] <= process <= edges[1]:
                names = self._reader.read(group, ["process", "name"])
                coded = names.column("name").combine_chunks()
                coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
                waiting = np.array(
                    [name is not None and synchronizes(name) for name in coded.dictionary.to_pylist()]
                    + [False]
                )
                if waiting.any():
                    own = np.asarray(names.column("process").to_numpy()) == process
                    which = np.flatnonzero(
                        waiting[np.asarray(coded.indices.fill_null(-1).to_numpy(), np.int64)] & own
                    )
                    rows = self._reader.read(group, ["thread", "start", "end"])
                    thread_of, begin, finish = (
                        np.asarray(column.to_numpy(), np.int64)[which] for column in rows.columns
                    )
                    parts.append((thread_of, begin, finish))
        thread, start, end = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(thread, kind="stable")
        keys, first = np.unique(thread[order], return_index=True)
        edges_of = [*first.tolist(), len(order)]
        return {
            int(key): union(
                start[order[edges_of[n] : edges_of[n + 1]]], end[order[edges_of[n] : edges_of[n + 1]]]
            )
            for n, key in enumerate(keys.tolist())
        }

    def _read(self, group: RowGroup) -> tuple[Int64Array, ...]:
        if self._last is None or self._last[0] is not group:
            rows = self._reader.read(group, ["id", "thread", "start", "end"])
            columns = tuple(np.asarray(column.to_numpy(), np.int64) for column in rows.columns)
            if len(columns[0]) > 1 and np.any(columns[0][1:] < columns[0][:-1]):
                order = np.argsort(columns[0], kind="stable")
                columns = tuple(column[order] for column in columns)
            self._last = group, columns
        return self._last[1]


def called(report: Report, ids: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Return `name` and `correlation` of the calls with these ids.

    Null for null, and for a call that is not in the report.
    """
    wanted = np.unique(np.asarray(pc.drop_null(ids).to_numpy(), np.int64))
    parts = []
    reader = Reader("cuda_api")
    for group in row_groups(report, "cuda_api"):
        edges = group.edges("id")
        low, high = (
            (0, len(wanted)) if edges is None else np.searchsorted(wanted, [edges[0], edges[1]], side="left")
        )
        if high >= low and low < len(wanted):
            rows = reader.read(group, ["id", "name", "correlation"])
            rows = rows.filter(pc.is_in(rows.column("id"), value_set=pa.array(wanted)))
            parts.append(rows.set_column(1, "name", rows.column("name").cast(pa.string())))
    empty = pa.table(
        {
            "id": pa.array([], pa.int64()),
            "name": pa.array([], pa.string()),
            "correlation": pa.array([], pa.int64()),
        }
    )
    known = (pa.concat_tables(parts) if parts else empty).combine_chunks()
    place = (
        pc.index_in(ids, value_set=known.column("id").combine_chunks())
        if known.num_rows
        else pa.nulls(len(ids), pa.int32())
    )
    place = pc.if_else(pc.is_null(ids), None, place)
    place = place.combine_chunks() if isinstance(place, pa.ChunkedArray) else place
    return pa.table(
        {name: known.column(name).combine_chunks().take(place) for name in ("name", "correlation")}
    )
