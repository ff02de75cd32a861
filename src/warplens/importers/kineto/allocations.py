"""Memory that PyTorch's allocators took and gave back: the table `tensor_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.importers.kineto.columns import dictionary, optional, ordered
from warplens.importers.kineto.layout import NULL32
from warplens.importers.rows import numbered

if TYPE_CHECKING:
    from warplens.importers.kineto.ranges import KinetoRanges
    from warplens.importers.kineto.trace import KinetoTrace

# c10::DeviceType
_DEVICES = (
    *(
        "CPU",
        "CUDA",
        "MKLDNN",
        "OPENGL",
        "OPENCL",
        "IDEEP",
        "HIP",
        "FPGA",
        "MAIA",
        "XLA",
        "VULKAN",
        "METAL",
        "XPU",
        "MPS",
        "META",
        "HPU",
    ),
    *("VE", "LAZY", "IPU", "MTIA", "PRIVATEUSE1"),
)
_CPU = 0


def write(trace: KinetoTrace, ranges: KinetoRanges) -> None:
    """Write `tensor_memory`."""
    identity = trace.identity
    names = ("start", "address", "bytes", "allocated", "reserved", "device", "device_type")
    columns = dict(zip(names, trace.take("memory", *names), strict=True))
    lane = identity.lanes.pop("memory")
    process, thread = (
        keys[lane] if len(lane) else np.empty(0, np.int64) for keys in (identity.process, identity.thread)
    )
    order = ordered(process, columns["start"])
    if order is not None:
        columns = {name: column[order] for name, column in columns.items()}
        process, thread = process[order], thread[order]
    start, kind, device = columns["start"], columns["device_type"], columns["device"]
    identity.saw(process, thread, start=start, end=start)
    kind = np.where(kind == NULL32, np.where(device >= 0, 1, _CPU), kind)
    known = np.where((kind >= 0) & (kind < len(_DEVICES)), kind, len(_DEVICES)).astype(np.int32)
    trace.write(
        "tensor_memory",
        {
            "id": numbered(process),
            "process": process,
            "thread": thread,
            "start": start,
            "device": pa.array(device, pa.int32(), mask=(device < 0) | (kind == _CPU)),
            "device_type": dictionary(known, [*_DEVICES, "unknown"]),
            "address": columns["address"].astype(np.uint64),
            "bytes": columns["bytes"],
            "allocated": optional(columns["allocated"]),
            "reserved": optional(columns["reserved"]),
            "range": ranges.around(thread, start),
        },
    )
