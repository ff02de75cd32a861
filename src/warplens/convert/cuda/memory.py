"""The table `gpu_memory`: allocations with a running total, of each device and kind of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert import texts
from warplens.convert.chosen import sane
from warplens.convert.cuda.labels import MEMORY_KINDS, MEMORY_OPERATIONS
from warplens.convert.cuda.place import NOWHERE, CudaPlace
from warplens.convert.place import ordered
from warplens.convert.words import labelled, optional
from warplens.spool.wide import WideRecords
from warplens.storage import schema

_ALLOCATE, _FREE = 1, 2
_MOST = 1 << 56  # bytes of an allocation; more is damage


def table(records: WideRecords, place: CudaPlace) -> Iterator[pa.Table]:
    """Return the rows of `gpu_memory`."""
    start = records.column("start")
    good = sane(start)
    place.tally.damaged += int((~good).sum())
    order = ordered(good, start)
    size, total = running(
        *(records.column(name)[order] for name in ("operation", "address", "bytes", "device", "memory_kind"))
    )
    # Totals are of everything, rows of what lies in a window.
    kept = place.spans.place(start[order]) >= 0
    offsets, size, total = records.offsets()[order[kept]], size[kept], total[kept]
    sources = texts.Names(place.strings, texts.plain)
    for rows in place.groups(len(offsets)):
        fields = records.rows(offsets[rows])
        use = (fields["operation"] == _ALLOCATE) | (fields["operation"] == _FREE)
        no_pool = fields["pool"] == 0
        (name,) = sources.columns(fields["name"])
        columns = {
            **place.ids(rows),
            "device": pa.array(fields["device"].astype(np.int32), mask=fields["device"] == NOWHERE),
            "context": pa.array(fields["context"].astype(np.int64), mask=_nothing(fields["context"])),
            "stream": pa.array(fields["stream"].astype(np.int64), mask=_nothing(fields["stream"])),
            "start": pa.array(place.clock(fields["start"].astype(np.int64))),
            "operation": labelled(fields["operation"], MEMORY_OPERATIONS),
            "kind": labelled(fields["memory_kind"], MEMORY_KINDS, absent=~use),
            "address": pa.array(fields["address"].astype(np.uint64)),
            "bytes": pa.array(size[rows]),
            "total": pa.array(total[rows], mask=~use),
            "pool": pa.array(fields["pool"].astype(np.uint64), mask=no_pool),
            "pool_size": pa.array(fields["pool_size"].astype(np.int64), mask=no_pool),
            "pool_used": pa.array(fields["pool_used"].astype(np.int64), mask=no_pool),
            "name": name,
            "api": place.api(place.calls.find(fields["correlation"].astype(np.int64))),
            "correlation": optional(fields["correlation"], 0),
        }
        yield schema.build("gpu_memory", columns)


def _nothing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    nothing: npt.NDArray[np.bool_] = (values == 0) | (values == NOWHERE)
    return nothing


def running(
    operation: Int64Array, address: Int64Array, given: Int64Array, device: Int64Array, kind: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the bytes of each operation, in order of time, and the process's total after it.

    The total is that of the kind on the device.

    Memory counts from its allocation on: what was allocated before the recording is not known, so freeing it changes nothing.
    """
    count = len(operation)
    size = np.clip(given, 0, _MOST)
    allocate, free = operation == _ALLOCATE, operation == _FREE
    use = np.flatnonzero(allocate | free)
    # What happened to each address, one after the other.
    use = use[np.argsort(address[use], kind="stable")]
    follows = np.zeros(len(use), bool)
    follows[1:] = address[use][1:] == address[use][:-1]
    before = np.full(count, -1, np.int64)
    before[use[1:]] = np.where(follows[1:], use[:-1], -1)
    had = (before >= 0) & allocate[before]
    freed = free & had
    size[freed & (size == 0)] = size[before[freed & (size == 0)]]
    # What is allocated where something is already was freed, and nobody said so.
    gone = allocate & had
    group = _groups(device, kind)
    every = np.arange(count)
    place = np.concatenate([every[allocate], every[freed], every[gone], every])
    change = np.concatenate(
        [size[allocate], -size[before[freed]], -size[before[gone]], np.zeros(count, np.int64)]
    )
    of = np.concatenate([group[allocate], group[before[freed]], group[before[gone]], group])
    order = np.lexsort((place, of))  # stable: reads of a total come behind its changes
    sums = np.cumsum(change[order])
    begins = np.flatnonzero(np.diff(of[order], prepend=-1))
    sums -= np.repeat(sums[begins] - change[order][begins], np.diff(begins, append=len(order)))
    asks = order >= len(order) - count
    total = np.zeros(count, np.int64)
    total[place[order][asks]] = sums[asks]
    return size, total


def _groups(device: Int64Array, kind: Int64Array) -> Int64Array:
    """Number the pairs of device and kind of memory."""
    _, group = np.unique(device << 32 | kind & 0xFFFFFFFF, return_inverse=True)
    return np.asarray(group.reshape(-1), np.int64)
