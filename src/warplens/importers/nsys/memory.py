"""Memory: the tables `gpu_memory` and `um_events`.

Allocations and pools; migrations and page faults of unified memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.conditions import Among
from warplens.importers.nsys.names import encoded, labelled
from warplens.importers.nsys.taken import NsysContext, NsysEvents, narrow
from warplens.importers.rows import numbered
from warplens.model import nsys_labels as labels
from warplens.storage import schema

_USAGE, _POOLS = "CUDA_GPU_MEMORY_USAGE_EVENTS", "CUDA_GPU_MEMORY_POOL_EVENTS"
_COPIES, _CPU_FAULTS, _GPU_FAULTS = (
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
)
_POOL = ("localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize")


def gpu_memory(context: NsysContext) -> None:
    """Write `gpu_memory`: allocations with a running total, and what happened to pools, in order of time."""
    write_sorted(context, "gpu_memory", [_usage(context), _pools(context)])


def um_events(context: NsysContext) -> None:
    """Write `um_events`."""
    write_sorted(context, "um_events", [_migrations(context), _cpu_faults(context), _gpu_faults(context)])


def _usage(context: NsysContext) -> dict[str, Any]:
    ints = (
        "start",
        "globalPid",
        "deviceId",
        "contextId",
        "address",
        "bytes",
        "memKind",
        "memoryOperationType",
        "correlationId",
        "streamId",
    )
    rows = context.read(_USAGE, [*ints, *_POOL], ("name",))
    events = NsysEvents.sorted(context, rows, "globalPid", end=None, table=_USAGE)
    rows = events.rows
    freed = rows.ints("memoryOperationType") == 1
    taken, known = sizes(events.process, rows.ints("address"), rows.ints("bytes"), freed=freed)
    total = running(
        np.stack([events.process, rows.ints("deviceId"), rows.ints("memKind")]),
        np.where(freed, -taken, taken) * known,
    )
    return {
        "process": events.process,
        "start": events.start,
        "device": events.optional_narrow("deviceId"),
        "context": events.optional("contextId"),
        "stream": events.optional("streamId"),
        "operation": labelled(
            rows.ints("memoryOperationType"),
            np.ones(len(rows), bool),
            labels.MEMORY_OPERATIONS,
            unknown="operation {}",
        ),
        "kind": labelled(rows.ints("memKind"), rows.valid("memKind"), labels.MEMORY_KINDS),
        "address": rows.ints("address").view(np.uint64),
        "bytes": taken,
        "total": total,
        "pool": _unsigned(rows.ints(_POOL[0]), rows.valid(_POOL[0])),
        "pool_size": events.optional(_POOL[1]),
        "pool_used": events.optional(_POOL[2]),
        "name": rows.texts("name").dictionary_encode(),
        **events.called(context),
    }


def _pools(context: NsysContext) -> dict[str, Any]:
    rows = context.read(
        _POOLS, ["start", "globalPid", "deviceId", "address", "operationType", "correlationId", *_POOL[1:]]
    )
    events = NsysEvents.sorted(context, rows, "globalPid", end=None, table=_POOLS)
    rows = events.rows
    address = rows.ints("address")
    return {
        "process": events.process,
        "start": events.start,
        "device": events.optional_narrow("deviceId"),
        "operation": labelled(
            rows.ints("operationType"),
            np.ones(len(rows), bool),
            labels.POOL_OPERATIONS,
            unknown="pool operation {}",
        ),
        "address": address.view(np.uint64),
        "bytes": np.zeros(len(rows), np.int64),
        "pool": _unsigned(address, np.ones(len(rows), bool)),
        "pool_size": events.optional(_POOL[1]),
        "pool_used": events.optional(_POOL[2]),
        **events.called(context),
    }


def _migrations(context: NsysContext) -> dict[str, Any]:
    ints = (
        "start",
        "end",
        "deviceId",
        "globalPid",
        "bytes",
        "copyKind",
        "srcDeviceId",
        "dstDeviceId",
        "migrationCause",
        "virtualAddress",
    )
    if not context.database.has(_COPIES, "copyKind"):
        return {}
    rows = context.read(_COPIES, ints, where=[Among("copyKind", tuple(labels.UNIFIED))])
    events = NsysEvents.sorted(context, rows, "globalPid", table=_COPIES)
    rows = events.rows
    kind, device = rows.ints("copyKind"), narrow(rows.ints("deviceId"))
    source = np.where(rows.valid("srcDeviceId"), narrow(rows.ints("srcDeviceId")), device)
    destination = np.where(rows.valid("dstDeviceId"), narrow(rows.ints("dstDeviceId")), device)
    causes = rows.valid("migrationCause") & (rows.ints("migrationCause") != 0)
    return {
        "process": events.process,
        "start": events.start,
        "end": events.end,
        "kind": labelled(kind, np.ones(len(rows), bool), labels.UNIFIED),
        "device": device,
        "source": pa.array(source, pa.int32(), mask=kind == 11),
        "destination": pa.array(destination, pa.int32(), mask=kind == 12),
        "address": rows.ints("virtualAddress").view(np.uint64),
        "bytes": rows.ints("bytes"),
        "cause": labelled(rows.ints("migrationCause"), causes, labels.MIGRATION_CAUSES, unknown="cause {}"),
    }


def _cpu_faults(context: NsysContext) -> dict[str, Any]:
    rows = context.read(_CPU_FAULTS, ["start", "globalPid", "address", "CpuInstruction"])
    events = NsysEvents.sorted(context, rows, "globalPid", end=None, table=_CPU_FAULTS)
    instruction = events.rows.ints("CpuInstruction")
    return {
        "process": events.process,
        "start": events.start,
        "end": events.end,
        "kind": _constant("CPU page fault", len(events.rows)),
        "address": events.rows.ints("address").view(np.uint64),
        "faults": np.ones(len(events.rows), np.int64),
        "instruction": _known(
            encoded(context.database, instruction, events.rows.valid("CpuInstruction") & (instruction != 0))
        ),
    }


def _gpu_faults(context: NsysContext) -> dict[str, Any]:
    rows = context.read(
        _GPU_FAULTS,
        ["start", "end", "globalPid", "deviceId", "address", "numberOfPageFaults", "faultAccessType"],
    )
    events = NsysEvents.sorted(context, rows, "globalPid", table=_GPU_FAULTS)
    rows = events.rows
    access = rows.valid("faultAccessType") & (rows.ints("faultAccessType") != 0)
    return {
        "process": events.process,
        "start": events.start,
        "end": events.end,
        "kind": _constant("GPU page fault", len(rows)),
        "device": events.optional_narrow("deviceId"),
        "address": rows.ints("address").view(np.uint64),
        "faults": rows.ints("numberOfPageFaults"),
        "cause": labelled(rows.ints("faultAccessType"), access, labels.FAULT_ACCESS, unknown="access {}"),
    }


def sizes(
    process: Int64Array, address: Int64Array, given: Int64Array, freed: BoolArray
) -> tuple[Int64Array, BoolArray]:
    """Return the bytes that each row allocated or freed, and which rows count.

    The end of an allocation from before the recording does not.

    Rows are in order of time within each process. Older versions do not say how much was freed: then what was allocated there counts.
    """
    order = np.lexsort((np.arange(len(process)), address, process))
    before = np.roll(order, 1)
    matched = np.zeros(len(process), bool)
    same = (process[order] == process[before]) & (address[order] == address[before])
    same[:1] = False
    matched[order] = same & ~freed[before]
    allocated = np.zeros(len(process), np.int64)
    allocated[order] = given[before]
    return np.where(freed & matched & (given == 0), allocated, given), ~freed | matched


def running(keys: Int64Array, change: Int64Array) -> Int64Array:
    """Return the sum of all changes with the same keys (one column for each row) up to each row."""
    total = np.zeros(len(change), np.int64)
    if len(change):
        # One running sum over all rows, sorted by key, minus the sum before each key's first row:
        # changes [5, 2, -1] of key 0 and [4] of key 1 have the sums [5, 7, 6, 10], and 10 - 6 = 4.
        _, group = np.unique(keys, axis=1, return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        sums = np.cumsum(change[order])
        first = np.flatnonzero(np.diff(group.reshape(-1)[order], prepend=-1))
        base = np.repeat(np.where(first > 0, sums[first - 1], 0), np.diff(np.append(first, len(change))))
        total[order] = sums - base
    return total


def write_sorted(context: NsysContext, table: str, pieces: list[dict[str, Any]]) -> None:
    """Write rows from several tables of the file in order of process and time, numbered through."""
    tables = [
        schema.build(table, {"id": np.zeros(len(piece["process"]), np.int64), **piece})
        for piece in pieces
        if piece
    ]
    rows = pa.concat_tables(tables).unify_dictionaries()
    process, start = (rows.column(name).to_numpy() for name in ("process", "start"))
    rows = rows.take(pa.array(np.lexsort((start, process))))
    at = rows.schema.get_field_index("id")
    numbers = numbered(rows.column("process").to_numpy())
    context.part.write(
        table, rows.set_column(at, rows.schema.field(at), pa.chunked_array([pa.array(numbers, pa.int64())]))
    )


def _constant(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text])


def _known(texts: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the column with null if the file has no value."""
    plain = texts.cast(pa.string())
    return pc.if_else(pc.equal(plain, ""), pa.scalar(None, pa.string()), plain).dictionary_encode()


def _unsigned(values: Int64Array, valid: BoolArray) -> pa.Array:
    return pc.if_else(
        pa.array(valid & (values != 0)), pa.array(values.view(np.uint64)), pa.scalar(None, pa.uint64())
    )
