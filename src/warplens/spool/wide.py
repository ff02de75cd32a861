"""Reads wide chunks: the records of one type in a process, column by column or row by row."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.spool.chunks import Chunk

Records = npt.NDArray[Any]

_RELEASE_EVERY = 4 << 20  # bytes of the mapped file read before its pages are given back
_GATHERED = 4 << 20  # bytes of the file that rows are copied out of at once
_BLOCK = 1 << 14  # records that are looked at together
_LONG = 16  # stretches of at least this number of records are copied one by one

# What readers ask of each type of records; what its description lacks makes all its records unreadable. Whole numbers of any width.
FIELDS: dict[str, str] = {
    "cuda_api": "start end tid correlation result",
    "cuda_kernel": "start end device context stream correlation grid_x grid_y grid_z block_x block_y block_z static_shared dynamic_shared "
    "local_per_thread shared_executed local_total graph_node graph registers launch_type cluster_x cluster_y cluster_z",
    "cuda_memcpy": "start end bytes device context stream correlation graph_node graph copies copy_kind source_kind destination_kind "
    "asynchronous source_device destination_device",
    "cuda_memset": "start end bytes device context stream correlation graph_node graph value memory_kind",
    "cuda_sync": "start end kind correlation context stream event event_sync",
    "cuda_event": "start device context stream event correlation event_sync",
    "cuda_graph": "start end device context stream correlation graph graph_exec",
    "cuda_memory": "start address bytes pool pool_size pool_used device context stream correlation operation memory_kind",
    "cuda_um": "start end value address kind source destination cause",
    "cuda_overhead": "start end kind tid correlation jit",
    "cuda_device": "device major minor multiprocessors memory memory_bandwidth clock uuid_low uuid_high pci_domain pci_bus pci_device "
    "l2_size",
    "cuda_context": "start context device null_stream handle",
    "cuda_stream": "start context stream priority kind handle",
    "cuda_external": "external kind correlation",
    "cuda_backtrace": "correlation frames",
    "cuda_notice": "start value notice",
    "cuda_thread": "start tid",
    "cpu_frame": "node parent address offset file line first_line module",
    "cpu_module": "time begin end bias module build_id",
    "cpu_sample": "start end tid stack count cpu interval",
    "cpu_state": "start end tid cpu",
    "os_call": "start end result object tid fd text stack",
    "gil": "start end held_ns waited_ns tid holds waits interpreter",
    "python_span": "start end value value2 tid file line color",
    "cpu_notice": "start value notice",
    "intrakernel_launch": "start address stream launch buffer generation tid buffer_name device",
    "intrakernel_read": "asked start end blob bytes value first_ns last_ns launch tid tags units room claimed slots blocks",
}


def readable(name: str, dtype: np.dtype[Any]) -> bool:
    """Say whether records of this type have the fields that their readers need."""
    known = FIELDS.get(name)
    fields: Mapping[str, Any] = dtype.fields or {}
    return known is not None and all(
        field in fields and fields[field][0].kind in "ui" for field in ("name", "domain", *known.split())
    )


class WideRecords:
    """The records of one type, in the order of their chunks.

    `damaged`: number of records of another type than their chunk says.
    """

    def __init__(
        self,
        memory: npt.NDArray[np.uint8],
        mapped: mmap.mmap,
        dtype: np.dtype[Any],
        number: int,
    ) -> None:
        self._memory = memory
        self._mapped = mapped
        self._dtype = dtype
        self._number = number
        self._pieces: list[
            tuple[int, int, npt.NDArray[np.bool_] | None]
        ] = []  # offset, records, those that can be used (None: all)
        self._touched = 0
        self.damaged = 0
        self._count = 0

    @classmethod
    def of(
        cls,
        memory: npt.NDArray[np.uint8],
        mapped: mmap.mmap,
        dtype: np.dtype[Any],
        *,
        number: int,
        chunks: Iterable[Chunk],
    ) -> WideRecords:
        """Return the records in some chunks."""
        records = cls(memory, mapped, dtype, number)
        for chunk in chunks:
            records._add(chunk)
        return records

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return int(self._dtype.itemsize)

    def column(self, name: str) -> Int64Array:
        """Return one field of all records.

        What does not fit into 63 bits wraps around: callers look at what they get.
        """
        out = np.empty(self._count, np.int64)
        at = 0
        for _, block in self.blocks():
            out[at : at + len(block)] = block[name].astype(np.int64)
            at += len(block)
        return out

    def offsets(self) -> Int64Array:
        """Return where each record lies in the file: what `rows` takes, in any order."""
        size = self._dtype.itemsize
        out = np.empty(self._count, np.int64)
        at = 0
        for offset, count, usable in self._pieces:
            places = np.arange(offset, offset + size * count, size, dtype=np.int64)
            places = places if usable is None else places[usable]
            out[at : at + len(places)] = places
            at += len(places)
        return out

    def blocks(self) -> Iterator[tuple[Int64Array, npt.NDArray[Any]]]:
        """Yield all records in blocks: their offsets, and a view that is valid until the next block."""
        size = self._dtype.itemsize
        for offset, count, usable in self._pieces:
            for first in range(0, count, _BLOCK):
                some = min(_BLOCK, count - first)
                at = offset + first * size
                view, places = self._view(at, some), np.arange(at, at + size * some, size, dtype=np.int64)
                mine = None if usable is None else usable[first : first + some]
                yield (places, view) if mine is None else (places[mine], view[mine])
                self._touch(some * size)
        self._release()

    def stretches(self, offsets: Int64Array, counts: Int64Array) -> npt.NDArray[Any]:
        """Return the records of places that lie behind each other, as far as they can be used.

        `counts`: how many at each offset.
        """
        size = self._dtype.itemsize
        ends = np.cumsum(counts)
        rows = np.empty(int(ends[-1]) if len(ends) else 0, self._dtype)
        if len(offsets) * _LONG < len(rows):
            bytes_ = rows.view(np.uint8)
            for offset, end, count in zip(
                offsets.tolist(), (ends * size).tolist(), (counts * size).tolist(), strict=True
            ):
                bytes_[end - count : end] = self._memory[offset : offset + count]
                self._touch(count)
            self._release()
        else:
            # Long stretches are copied one by one; short ones are gathered by an index for each
            # row. `within` counts from 0 in each stretch: counts [2, 3] give [0, 1, 0, 1, 2].
            within = np.arange(len(rows), dtype=np.int64) - np.repeat(ends - counts, counts)
            rows = self.rows(np.repeat(offsets, counts) + within * size)
        usable = rows["type"] == self._number
        return rows if usable.all() else rows[usable]

    def rows(self, offsets: Int64Array) -> npt.NDArray[Any]:
        """Return records by where they lie."""
        out = np.empty(len(offsets), self._dtype)
        words = self._memory[: len(self._memory) // 8 * 8].view("<u8")
        steps = np.arange(self._dtype.itemsize // 8)
        whole = out.view("<u8").reshape(len(out), len(steps))
        order = None if (offsets[1:] >= offsets[:-1]).all() else np.argsort(offsets, kind="stable")
        places = offsets if order is None else offsets[order]
        # Some of the file at once: a record that is looked at maps all that lies around it.
        edges = np.flatnonzero(np.diff(places // _GATHERED)) + 1
        for first, last in pairwise([0, *edges.tolist(), len(places)]):
            taken = np.take(words, (places[first:last] >> 3)[:, None] + steps, mode="clip")
            whole[slice(first, last) if order is None else order[first:last]] = taken
            self._release()
        return out

    def _add(self, chunk: Chunk) -> None:
        size = self._dtype.itemsize
        records = self._view(chunk.offset, chunk.size // size)
        types = records["type"]
        empty = types == 0
        count = int(empty.argmax()) if empty.any() else len(types)
        odd = types[:count] != self._number
        usable = None
        if odd.any():
            usable = ~odd
            self.damaged += int(odd.sum())
        if count:
            self._pieces.append((chunk.offset, count, usable))
            self._count += count if usable is None else int(usable.sum())
        self._touch(chunk.size)

    def _view(self, offset: int, count: int) -> npt.NDArray[Any]:
        return self._memory[offset : offset + count * self._dtype.itemsize].view(self._dtype)

    def _touch(self, size: int) -> None:
        self._touched += size
        if self._touched >= _RELEASE_EVERY:
            self._release()

    def _release(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)
        self._touched = 0


def read(
    memory: npt.NDArray[np.uint8],
    mapped: mmap.mmap,
    layouts: Mapping[int, tuple[str, np.dtype[Any]]],
    chunks: Iterable[Chunk],
) -> tuple[dict[str, WideRecords], int]:
    """Return the records of the wide `chunks` by type name, and the number of unreadable chunks."""
    of: dict[int, list[Chunk]] = {}
    unknown = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.sequence):
        name, dtype = layouts.get(chunk.record, ("", np.dtype("V8")))
        if readable(name, dtype) and chunk.stride == dtype.itemsize:
            of.setdefault(chunk.record, []).append(chunk)
        else:
            unknown += 1
    return {
        layouts[number][0]: WideRecords.of(memory, mapped, layouts[number][1], number=number, chunks=mine)
        for number, mine in of.items()
    }, unknown
