"""Memory snapshots of PyTorch: what its CUDA allocator did, with stacks.

## Made by
`torch.cuda.memory._dump_snapshot("run.pickle")`, after `torch.cuda.memory._record_memory_history()`; PyTorch 2.2 and later.

## What maps to what
| there | here |
|---|---|
| `alloc`, `free_completed` of a device | `tensor_memory`, with the totals of tensors and of the allocator after it, and the stack |
| `segment_alloc`, `segment_map` and their opposites | `gpu_memory` |
| frames | `frames`, of Python and of native code |
| annotations | `nvtx_ranges` |
| `oom` | a row of `diagnostics` |

The file is a pickle. The importer reads numbers, texts, lists and dicts from it, and refuses a file with anything else.

## What is dropped
Streams and pools of blocks, settings of the allocator, requests to free that were not completed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.importers.kineto.ranges import enclosing
from warplens.importers.rows import numbered, whole_window
from warplens.importers.torch.annotations import MemoryAnnotations
from warplens.importers.torch.history import AllocationStacks, DeviceHistory
from warplens.importers.torch.pickled import begins_with_keys, load
from warplens.model.words import counted, size
from warplens.storage.writer import THREADS_PER_PROCESS, Facts

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import PartWriter

SUFFIXES = (".pickle", ".pkl")
CONTENT = "memory snapshot of PyTorch"
DROPS: tuple[str, ...] = ("streams and pools of blocks", "settings of the allocator")
_HOST = "memory snapshot"
_US = 1000  # ns


def recognises(path: Path) -> bool:
    """Say whether the file is a pickle that begins with segments or traces of devices."""
    return begins_with_keys(path, b"segments", b"device_traces")


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError for a file that is broken or has no history.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    snapshot = load(source)
    progress("read", 0.4)
    stacks = AllocationStacks(part.key(0))
    try:
        segments = snapshot["segments"]
        devices = {
            number: DeviceHistory.of(trace, [own for own in segments if own["device"] == number], stacks)
            for number, trace in enumerate(snapshot["device_traces"])
            if trace
        }
        notes = MemoryAnnotations.of(snapshot.get("external_annotations", ()))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ReportError(f"{source} is broken: {type(error).__name__}: {error}.") from error
    if not devices:
        raise ReportError(
            f"{source} has no history: call torch.cuda.memory._record_memory_history() before the part that you want."
        )
    first = min(int(device.time[0]) for device in devices.values())
    last = max(int(device.time[-1]) for device in devices.values())
    end = (last - first) * _US
    notes = notes.within(first, last)
    thread = part.key(0) * THREADS_PER_PROCESS
    ids = notes.write(part, thread)
    progress("stacks", 0.7)
    _write_tensors(part, devices, first, notes=notes, ids=ids)
    _write_segments(part, devices, first)
    part.write("frames", stacks.tree.rows)
    _write_places(part, source, end)
    part.write("diagnostics", _failures(devices, first))
    progress("write", 1.0)
    return Facts(
        id=part.id,
        host=_HOST,
        boot_id=part.id,
        end=max(end, 1),
        realtime_offset=first * _US,
        clock="kineto",
        sources={"tensor_memory": {"on": True, "by": CONTENT}},
    )


def _write_tensors(
    part: PartWriter,
    devices: dict[int, DeviceHistory],
    first: int,
    *,
    notes: MemoryAnnotations,
    ids: Int64Array,
) -> None:
    names = ("time", "address", "taken", "allocated", "reserved", "stack")
    kept = {number: np.flatnonzero(device.taken) for number, device in devices.items()}
    columns = {
        name: np.concatenate([getattr(devices[number], name)[rows] for number, rows in kept.items()])
        for name in names
    }
    device = np.repeat(list(kept), [len(rows) for rows in kept.values()]).astype(np.int32)
    order = np.argsort(columns["time"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    start = (columns["time"] - first) * _US
    key = np.full(len(order), part.key(0), np.int64)
    thread = key * THREADS_PER_PROCESS
    own = np.full(len(ids), part.key(0) * THREADS_PER_PROCESS, np.int64)
    around = enclosing(own, notes.start, notes.end, ids=ids, of=thread, at=start)
    part.write(
        "tensor_memory",
        {
            "id": numbered(key),
            "process": key,
            "thread": thread,
            "start": start,
            "device": device[order],
            "device_type": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(len(order), np.int32)), pa.array(["CUDA"])
            ),
            "address": columns["address"],
            "bytes": columns["taken"],
            "allocated": columns["allocated"],
            "reserved": columns["reserved"],
            "range": pa.array(around, mask=around < 0),
            "stack": pa.array(columns["stack"], mask=columns["stack"] < 0),
        },
    )


def _write_segments(part: PartWriter, devices: dict[int, DeviceHistory], first: int) -> None:
    rows = [
        {
            "process": part.key(0),
            "device": number,
            "start": (int(device.time[at]) - first) * _US,
            "operation": "allocate" if device.got[at] > 0 else "free",
            "kind": "Device",
            "address": int(device.address[at]),
            "bytes": abs(int(device.got[at])),
            "total": int(device.reserved[at]),
        }
        for number, device in devices.items()
        for at in np.flatnonzero(device.got).tolist()
    ]
    rows.sort(key=lambda row: int(row["start"]))
    ids = numbered(np.full(len(rows), part.key(0), np.int64)).tolist()
    part.write("gpu_memory", [{"id": key, **row} for key, row in zip(ids, rows, strict=True)])


def _write_places(part: PartWriter, source: Path, end: int) -> None:
    """Write a process with the name of the file: the file does not say which program it was."""
    process = part.key(0)
    texts = {"host": _HOST, "executable": "", "command": "", "name": source.name}
    span = {"start": 0, "end": max(end, 1)}
    row = {"process": process, "pid": 0, "parent_pid": 0, **texts, **span, "primary": True, "exited": True}
    part.write("processes", [row])
    thread = {"thread": process * THREADS_PER_PROCESS, "process": process, "tid": 0, "name": "allocator"}
    part.write("threads", [{**thread, "start": 0}])
    part.write("capture_windows", whole_window(part.part, _HOST, begin=0, end=max(end, 1)))


def _failures(devices: dict[int, DeviceHistory], first: int) -> list[dict[str, Any]]:
    rows = []
    for number, device in devices.items():
        if not device.failed:
            continue
        most = max(bytes for _, bytes in device.failed)
        times = counted(len(device.failed), "time")
        text = f"GPU {number} was out of memory {times}; the largest request was {size(most)}"
        row = {"severity": "warning", "code": "out-of-memory", "source": "import", "message": text}
        rows.append({**row, "count": len(device.failed), "time": (int(device.failed[0][0]) - first) * _US})
    return rows
