"""Numbers that the native reader and this package share.

Fields, kinds of events, counts, endings (native/reader/chrome/trace_fields.h).
"""

from __future__ import annotations

FIELDS = (
    *("start", "end", "lane", "name", "category", "correlation", "external", "stream", "device", "context"),
    *(
        "grid_x",
        "grid_y",
        "grid_z",
        "block_x",
        "block_y",
        "block_z",
        "registers",
        "shared",
        "bytes",
        "graph_node",
        "graph",
    ),
    *("sequence", "forward_thread", "shapes", "types", "strides", "concrete"),
    *(
        "collective",
        "group",
        "group_size",
        "group_sequence",
        "elements_in",
        "elements_out",
        "element_type",
        "ranks",
    ),
    *(
        "address",
        "allocated",
        "reserved",
        "device_type",
        "sync_kind",
        "wait_stream",
        "wait_correlation",
        "event",
    ),
    *(
        "id",
        "phase",
        "payload",
        "argument",
        "argument_text",
        "value",
        "is_real",
        "sort_index",
        "row",
        "owner",
        "flags",
    ),
)
_WIDE = (
    *(
        "start",
        "end",
        "correlation",
        "external",
        "stream",
        "context",
        "shared",
        "bytes",
        "graph",
        "graph_node",
        "sequence",
    ),
    *("group_sequence", "elements_in", "elements_out", "address", "allocated", "reserved", "wait_stream"),
    *("wait_correlation", "event", "id", "payload", "value", "sort_index", "row"),
)
WIDE = frozenset(_WIDE)  # 64 bits, the others 32
KINDS = (
    *(
        "op",
        "annotation",
        "python",
        "runtime",
        "driver",
        "kernel",
        "memcpy",
        "memset",
        "sync",
        "cuda_event",
        "overhead",
        "memory",
        "flow",
    ),
    *("range", "async", "mark", "counter", "metadata", "collective"),
)
FACTS = ("ending", "broken_at", "broken", "too_long", "arrays", "last", "texts", "raws", "lanes")
COUNTS = (
    *(
        "events",
        "no_time",
        "negative",
        "no_end",
        "no_begin",
        "gpu_annotations",
        "spans",
        "known_flows",
        "payloads_lost",
    ),
)
WHOLE, OPEN_ARRAY, CUT, BROKEN, NO_TRACE = range(5)
NULL, NULL32 = -(1 << 63), -(1 << 31)
