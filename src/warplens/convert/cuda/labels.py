"""CUPTI's numbers of kinds in the words of the report."""

from __future__ import annotations

COPY_KINDS = {
    0: "Unknown",
    1: "Host-to-Device",
    2: "Device-to-Host",
    3: "Host-to-Array",
    4: "Array-to-Host",
    5: "Array-to-Array",
    6: "Array-to-Device",
    7: "Device-to-Array",
    8: "Device-to-Device",
    9: "Host-to-Host",
    10: "Peer-to-Peer",
}
MEMORY_KINDS = {
    0: "Unknown",
    1: "Pageable",
    2: "Pinned",
    3: "Device",
    4: "Array",
    5: "Managed",
    6: "Device Static",
    7: "Managed Static",
}
LAUNCH_TYPES = {0: "regular", 1: "cooperative", 2: "cooperative multi-device"}
SYNC_KINDS = {0: "Unknown", 1: "Event", 2: "Stream wait event", 3: "Stream", 4: "Context"}
STREAM_KINDS = {1: "default", 2: "non-blocking", 3: "null"}
MEMORY_OPERATIONS = {1: "allocate", 2: "free", 3: "pool create", 4: "pool destroy", 5: "pool trim"}
EXTERNAL_KINDS = {1: "unknown", 2: "OpenACC", 3: "custom0", 4: "custom1", 5: "custom2"}
OVERHEAD_KINDS = {
    0: "Unknown",
    1: "Driver compiler",
    1 << 16: "Buffer flush",
    2 << 16: "Instrumentation",
    3 << 16: "Resource",
    4 << 16: "Module loading",
    5 << 16: "Lazy function loading",
    6 << 16: "Command buffer full",
    7 << 16: "Buffer request",
    8 << 16: "Unified memory initialization",
}
JIT_OPERATIONS = {1: "JIT cache load", 2: "JIT cache store", 3: "JIT compile"}

(
    UM_TO_DEVICE,
    UM_TO_HOST,
    UM_CPU_FAULT,
    UM_GPU_FAULT,
    UM_THRASHING,
    UM_THROTTLING,
    UM_REMOTE_MAP,
    UM_BETWEEN,
) = range(1, 9)
UM_KINDS = {
    UM_TO_DEVICE: "HtoD",
    UM_TO_HOST: "DtoH",
    UM_CPU_FAULT: "CPU page fault",
    UM_GPU_FAULT: "GPU page fault",
    UM_THRASHING: "thrashing",
    UM_THROTTLING: "throttling",
    UM_REMOTE_MAP: "remote map",
    UM_BETWEEN: "DtoD",
}
MIGRATION_CAUSES = {1: "user", 2: "coherence", 3: "prefetch", 4: "eviction", 5: "access counters"}
REMOTE_MAP_CAUSES = {1: "coherence", 2: "thrashing", 3: "policy", 4: "out of memory", 5: "eviction"}
FAULT_ACCESS = {1: "read", 2: "write", 3: "atomic", 4: "prefetch"}
