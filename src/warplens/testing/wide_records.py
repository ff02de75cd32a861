"""Makes the records of wide chunks, byte by byte, for tests and benchmarks."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

_CODES = {"u1": "<B", "u2": "<H", "u4": "<I", "u8": "<Q", "i4": "<i", "i8": "<q"}
_HEAD = [("type", "u1", 0), ("flags", "u1", 1), ("domain", "u2", 2), ("name", "u4", 4)]
_SPAN = "start:u8 end:u8"
_PLACE = "device:u4 context:u4 stream:u4 correlation:u4"

# Fields in their order from byte 8 on; a dash is padding.
_FIELDS = {
    "cuda_graph_node": (25, "start:u8 node:u8 original:u8 tid:u4 -:u4"),
    "cuda_api": (32, f"{_SPAN} tid:u4 correlation:u4 result:i4 cbid:u4"),
    "cuda_kernel": (
        33,
        f"{_SPAN} {_PLACE} grid_x:i4 grid_y:i4 grid_z:i4 block_x:i4 block_y:i4 block_z:i4 static_shared:i4 dynamic_shared:i4 "
        "local_per_thread:u4 shared_executed:u4 local_total:u8 graph_node:u8 grid_id:i8 graph:u4 registers:u2 launch_type:u1 "
        "cache_config:u1 cluster_x:u4 cluster_y:u4 cluster_z:u4 channel:u4",
    ),
    "cuda_memcpy": (
        34,
        f"{_SPAN} bytes:u8 {_PLACE} graph_node:u8 graph:u4 copies:u4 copy_kind:u1 source_kind:u1 destination_kind:u1 asynchronous:u1 "
        "source_device:u4 destination_device:u4 -:u4",
    ),
    "cuda_memset": (
        35,
        f"{_SPAN} bytes:u8 {_PLACE} graph_node:u8 graph:u4 value:u4 memory_kind:u4 asynchronous:u4",
    ),
    "cuda_sync": (
        36,
        f"{_SPAN} kind:u4 correlation:u4 context:u4 stream:u4 event:u4 result:i4 event_sync:u8",
    ),
    "cuda_event": (37, "start:u8 device:u4 context:u4 stream:u4 event:u4 correlation:u4 -:u4 event_sync:u8"),
    "cuda_graph": (38, f"{_SPAN} {_PLACE} graph:u4 graph_exec:u4"),
    "cuda_memory": (
        39,
        f"start:u8 address:u8 bytes:u8 pc:u8 pool:u8 pool_size:u8 pool_used:u8 pool_threshold:u8 {_PLACE} "
        "operation:u4 memory_kind:u4 pool_kind:u4 -:u4",
    ),
    "cuda_um": (40, f"{_SPAN} value:u8 address:u8 kind:u4 source:u4 destination:u4 stream:u4 cause:u4 -:u4"),
    "cuda_overhead": (41, f"{_SPAN} kind:u4 tid:u4 correlation:u4 jit:u4"),
    "cuda_device": (
        42,
        "device:u4 major:u4 minor:u4 multiprocessors:u4 memory:u8 memory_bandwidth:u8 clock:u4 memory_clock:u4 uuid_low:u8 uuid_high:u8 "
        "pci_domain:u4 pci_bus:u4 pci_device:u4 l2_size:u4",
    ),
    "cuda_context": (43, "start:u8 context:u4 device:u4 null_stream:u4 api:u4 handle:u8"),
    "cuda_stream": (44, "start:u8 context:u4 stream:u4 priority:u4 kind:u4 handle:u8"),
    "cuda_external": (45, "external:u8 kind:u4 correlation:u4"),
    "cuda_backtrace": (46, f"{_SPAN} frames:u8 tid:u4 correlation:u4 category:u4 -:u4"),
    "cuda_notice": (47, "start:u8 value:i8 notice:u4 -:u4"),
    "cuda_thread": (48, "start:u8 tid:u4 -:u4"),
    "cpu_frame": (49, "node:u4 parent:u4 address:u8 offset:u8 file:u4 line:u4 first_line:u4 module:u4"),
    "cpu_module": (50, "time:u8 begin:u8 end:u8 bias:u8 module:u4 build_id:u4"),
    "cpu_sample": (51, f"{_SPAN} tid:u4 stack:u4 count:u4 cpu:u4 interval:u8"),
    "cpu_state": (52, f"{_SPAN} tid:u4 cpu:u4"),
    "os_call": (53, f"{_SPAN} result:i8 object:u8 tid:u4 fd:i4 text:u4 stack:u4"),
    "gil": (54, f"{_SPAN} held_ns:u8 waited_ns:u8 tid:u4 holds:u4 waits:u4 interpreter:u4"),
    "python_span": (55, f"{_SPAN} value:i8 value2:i8 tid:u4 file:u4 line:u4 color:u4"),
    "cpu_notice": (61, "start:u8 value:i8 notice:u4 -:u4"),
    "intrakernel_launch": (
        62,
        "start:u8 address:u8 stream:u8 launch:u4 buffer:u4 generation:u4 tid:u4 buffer_name:u4 device:i4",
    ),
    "intrakernel_read": (
        63,
        f"asked:u8 {_SPAN} blob:u8 bytes:u8 value:i8 first_ns:u8 last_ns:u8 launch:u4 tid:u4 tags:u4 units:u4 room:u4 claimed:u4 slots:u4 "
        "blocks:u4",
    ),
}


def _described(number: int, fields: str) -> dict[str, Any]:
    layout: list[tuple[str, str, int]] = []
    at = 8
    for item in fields.split():
        name, kind = item.split(":")
        layout += [(name, kind, at)] if name != "-" else []
        at += int(kind[1])
    return {"id": number, "size": at, "fields": [*_HEAD, *layout]}


WIDE: dict[str, dict[str, Any]] = {name: _described(*item) for name, item in _FIELDS.items()}


def wide_record(kind: str, values: Mapping[str, int]) -> bytes:
    """Return one record; fields that are not named are 0.

    KeyError for a field that it does not have.
    """
    layout = WIDE[kind]
    places = {name: (code, offset) for name, code, offset in layout["fields"]}
    data = bytearray(layout["size"])
    for name, value in {"type": layout["id"], **values}.items():
        code, offset = places[name]
        struct.pack_into(_CODES[code], data, offset, value)
    return bytes(data)
