"""The tables `devices`, `contexts`, `streams`.

From nsys' tables, from the work that ran on them, from names given through NVTX.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from warplens.arrays import int32
from warplens.importers.nsys.taken import NsysContext
from warplens.importers.rows import numbered
from warplens.model.nsys_labels import STREAM_KINDS

_PARTS = ("hwId", "vmId", "processId")
_WORK = tuple(
    f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "CUDA_EVENT")
)
_Row = dict[str, Any]


def write(context: NsysContext) -> None:
    """Write the three tables, and the names that programs gave in `nvtx_objects`."""
    used = _used(context)
    contexts = _contexts(context, used)
    context.write(
        "devices",
        _devices(
            context, {(row["process"], row["device"]) for row in contexts} | {(p, d) for p, d, _, _ in used}
        ),
    )
    context.write("contexts", contexts)
    context.write("nvtx_objects", _named(context))
    context.write("streams", _streams(context, used))


def _used(context: NsysContext) -> set[tuple[int, int, int, int]]:
    """Return process, device, context and stream of everything that ran."""
    used = set()
    for table in _WORK:
        for pid, device, gpu_context, stream in context.database.distinct(
            table, ("globalPid", "deviceId", "contextId", "streamId")
        ):
            process = context.identity.keys.get(pid & ~0xFFFFFF)  # none: nothing of it had a time
            if process is not None and (
                gpu_context or stream
            ):  # migrations of unified memory may have neither
                used.add((process, int32(device), gpu_context, stream))
    return used


def _contexts(context: NsysContext, used: set[tuple[int, int, int, int]]) -> list[_Row]:
    rows: dict[tuple[int, int], _Row] = {
        (process, gpu_context): {"process": process, "context": gpu_context, "device": device}
        for process, device, gpu_context, _ in sorted(used)
    }
    for table in ("TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_CONTEXT_INFO"):
        for row_of_file in _rows_of(context, table, ("nullStreamId", "deviceId", "contextId")):
            row = rows.setdefault(
                (row_of_file["process"], row_of_file["contextId"]),
                {"process": row_of_file["process"], "context": row_of_file["contextId"]},
            )
            # What ran knows its device better than a table that older versions filled with zeros.
            row.setdefault("device", int32(row_of_file["deviceId"] or 0))
            row["null_stream"] = row_of_file["nullStreamId"] or None  # 0: not known
    for row_of_file in _rows_of(context, "TARGET_INFO_NVTX_CUDA_CONTEXT", ("deviceId", "contextId"), "name"):
        row = rows.setdefault(
            (row_of_file["process"], row_of_file["contextId"]),
            {"process": row_of_file["process"], "context": row_of_file["contextId"]},
        )
        row.setdefault("device", int32(row_of_file["deviceId"] or 0))
        row["name"] = row_of_file["name"]
    return [rows[key] for key in sorted(rows)]


def _streams(context: NsysContext, used: set[tuple[int, int, int, int]]) -> list[_Row]:
    rows: dict[tuple[int, int], _Row] = {}
    for process, _, gpu_context, stream in sorted(used):
        rows.setdefault((process, stream), {"process": process, "context": gpu_context, "stream": stream})
    for row_of_file in _rows_of(
        context, "TARGET_INFO_CUDA_STREAM", ("streamId", "contextId", "priority", "flag")
    ):
        key = row_of_file["process"], row_of_file["streamId"]
        row = rows.setdefault(
            key,
            {
                "process": row_of_file["process"],
                "context": row_of_file["contextId"],
                "stream": row_of_file["streamId"],
            },
        )
        row["priority"] = None if row_of_file["priority"] is None else int32(row_of_file["priority"])
        row["kind"] = STREAM_KINDS.get(row_of_file["flag"])
    for row_of_file in _rows_of(context, "TARGET_INFO_NVTX_CUDA_STREAM", ("contextId", "streamId"), "name"):
        key = row_of_file["process"], row_of_file["streamId"]
        rows.setdefault(
            key,
            {
                "process": row_of_file["process"],
                "context": row_of_file["contextId"],
                "stream": row_of_file["streamId"],
            },
        )["name"] = row_of_file["name"]
    return [rows[key] for key in sorted(rows)]


def _named(context: NsysContext) -> list[_Row]:
    """Return what programs named through NVTX.

    A device is named for all processes of a machine: the first one gets it.
    """
    rows = [
        {**entry, "kind": kind, "identifier": entry[number]}
        for kind, number, more in (
            ("context", "contextId", ("deviceId",)),
            ("stream", "streamId", ("deviceId", "contextId")),
        )
        for entry in _rows_of(context, f"TARGET_INFO_NVTX_CUDA_{kind.upper()}", (number, *more), "name")
    ]
    table = "TARGET_INFO_NVTX_CUDA_DEVICE"
    context.tally.used.add(table)
    for entry in context.database.read(table, ("hwId", "vmId", "deviceId"), texts=("name",)).dictionaries():
        machine = (entry["hwId"] or 0) << 56 | (entry["vmId"] or 0) << 48
        first = min(
            (key for pid, key in context.identity.keys.items() if pid & ~0xFFFFFFFFFFFF == machine),
            default=None,
        )
        if first is not None:
            rows.append({**entry, "process": first, "kind": "device", "identifier": entry["deviceId"]})
    rows.sort(key=lambda row: int(row["process"]))
    keys = numbered(np.array([row["process"] for row in rows], np.int64)).tolist()
    return [
        {
            "object": key,
            "process": row["process"],
            "kind": f"cuda_{row['kind']}",
            "identifier": (row["identifier"] or 0) & 0xFFFFFFFFFFFFFFFF,
            "name": row["name"],
            "definition": json.dumps(
                {name: value for name, value in row.items() if name.endswith("Id") and name not in _PARTS}
            ),
            "start": context.identity.first,
        }
        for key, row in zip(keys, rows, strict=True)
    ]


def _devices(context: NsysContext, used: set[tuple[int, int]]) -> list[_Row]:
    database, identity = context.database, context.identity
    gpus = {row["id"]: row for row in _gpus(context)}
    by_ordinal = _early_gpus(context) | {
        row["cuDevice"]: row for row in gpus.values() if row["cuDevice"] is not None
    }
    cards: dict[tuple[int, int], int] = {}  # pid, CUDA's number -> nsys' number of the GPU
    uuids: dict[tuple[int, int], str] = {}
    table = "TARGET_INFO_CUDA_DEVICE"
    context.tally.used.add(table)
    for row in database.read(table, ("gpuId", "cudaId", "pid"), texts=("uuid",)).dictionaries():
        if row["pid"] is not None and row["cudaId"] is not None:
            cards[row["pid"], row["cudaId"]] = row["gpuId"]
            if row["uuid"]:
                uuids[row["pid"], row["cudaId"]] = row["uuid"]
    pids = {key: pid >> 24 & 0xFFFFFF for pid, key in identity.keys.items()}
    for pid, cuda in cards:
        used |= {(key, int32(cuda)) for key, known in pids.items() if known == pid}
    rows = []
    for process, device in sorted(used):
        key = pids[process], device
        card = (
            gpus.get(cards[key])
            if key in cards
            else by_ordinal.get(device) or (gpus.get(device) if not cards else None)
        )
        rows.append({"process": process, "device": device, **_described(card or {}, uuids.get(key))})
    return rows


def _early_gpus(context: NsysContext) -> dict[int, _Row]:
    """Return the GPUs as files of early 2021 list them, by CUDA's number; of later ones nothing."""
    table = "TARGET_INFO_CUDA_GPU"
    context.tally.used.add(table)
    names = {
        "smCount": "numMultiprocessors",
        "computeMajor": "computeCapabilityMajor",
        "computeMinor": "computeCapabilityMinor",
    }
    rows = context.database.read(table, ("deviceId", *names.values()), texts=("name",)).dictionaries()
    return {
        row["deviceId"]: {name: row[there] for name, there in names.items()} | {"name": row["name"]}
        for row in rows
    }


def _gpus(context: NsysContext) -> list[_Row]:
    numbers = (
        "id",
        "cuDevice",
        "computeMajor",
        "computeMinor",
        "smCount",
        "totalMemory",
        "memoryBandwidth",
        "clockRate",
        "l2CacheSize",
    )
    texts = ("name", "busLocation", "uuid")
    context.tally.used.add("TARGET_INFO_GPU")
    return context.database.read("TARGET_INFO_GPU", numbers, texts=texts).dictionaries()


def _described(card: _Row, uuid: str | None) -> _Row:
    uuid = uuid or card.get("uuid")
    return {
        "name": card.get("name") or "GPU",
        "uuid": f"GPU-{uuid.removeprefix('GPU-')}" if uuid else None,
        "bus": (card.get("busLocation") or "").lower() or None,
        "compute_major": _small(card.get("computeMajor")),
        "compute_minor": _small(card.get("computeMinor")),
        "multiprocessors": _small(card.get("smCount")),
        "memory": card.get("totalMemory"),
        "memory_bandwidth": card.get("memoryBandwidth"),
        "clock": card.get("clockRate"),
        "l2_size": card.get("l2CacheSize"),
    }


def _rows_of(context: NsysContext, table: str, ints: tuple[str, ...], *texts: str) -> list[_Row]:
    """Return the rows of a table that are about processes of the report, with the key of their process."""
    context.tally.used.add(table)
    rows = []
    for row in context.database.read(table, (*_PARTS, *ints), texts=texts).dictionaries():
        key = context.identity.key_of(*(row[name] or 0 for name in _PARTS))
        if key is not None and all(row[name] is not None for name in ints if name.endswith("Id")):
            rows.append({**row, "process": key})
    return rows


def _small(value: int | None) -> int | None:
    return None if value is None else int32(value)
