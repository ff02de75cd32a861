"""Converts nsys's numbers of kinds to the words of the report."""

from __future__ import annotations

COPY_KINDS = dict(
    enumerate(
        (
            *(
                "Unknown",
                "Host-to-Device",
                "Device-to-Host",
                "Host-to-Array",
                "Array-to-Host",
                "Array-to-Array",
                "Array-to-Device",
            ),
            *("Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer"),
            *("Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device"),
        )
    )
)
UNIFIED = {11: "HtoD", 12: "DtoH", 13: "DtoD"}  # copies that are migrations of unified memory
MEMORY_KINDS = dict(
    enumerate(
        ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")
    )
)
LAUNCH_TYPES = {0: "unknown", 1: "regular", 2: "cooperative", 3: "cooperative multi-device"}
SYNC_KINDS = {0: "Unknown", 1: "Event", 2: "Stream wait event", 3: "Stream", 4: "Context"}
STREAM_KINDS = {1: "default", 2: "non-blocking", 3: "null"}
OVERHEAD_KINDS = {
    0: "Unknown",
    1: "Unknown",
    2: "Driver compiler",
    3: "Buffer flush",
    4: "Instrumentation",
    5: "Resource",
    6: "Module loading",
    7: "Lazy function loading",
    8: "Command buffer full",
}
MEMORY_OPERATIONS = {0: "allocate", 1: "free"}
POOL_OPERATIONS = {1: "pool create", 2: "pool destroy", 3: "pool trim"}
MIGRATION_CAUSES = {1: "user", 2: "coherence", 3: "prefetch", 4: "eviction", 5: "access counters"}
FAULT_ACCESS = {1: "read", 2: "write", 3: "atomic", 4: "prefetch"}
SEVERITIES = {1: "info", 2: "warning", 3: "error", 4: "info"}
JIT_OPERATIONS = {1: "JIT cache load", 2: "JIT cache store", 3: "JIT compile"}
FILE_OPERATIONS = ("other", "open", "close", "read", "write", "sync", "seek")
METRIC_UNITS = {
    "Throughput %": "%",
    "%": "%",
    "MHz": "MHz",
    "W": "W",
    "C": "C",
    "B/s": "bytes/s",
    "B": "bytes",
}
SAMPLE_INTERVAL = "WARPLENS_SAMPLE_INTERVAL_NS"  # what our own exports say about themselves
