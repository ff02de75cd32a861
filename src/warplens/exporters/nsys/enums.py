"""The tables `ENUM_…`: names of nsys's numbers, for those that our exports hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.model.nsys_labels import FILE_OPERATIONS

if TYPE_CHECKING:
    from warplens.exporters.nsys.database import Writer

# A line each: number, name, label.
_TABLES = {
    "ENUM_CUDA_MEMCPY_OPER": """
        0 CUDA_MEMCPY_KIND_UNKNOWN Unknown
        1 CUDA_MEMCPY_KIND_HTOD Host-to-Device
        2 CUDA_MEMCPY_KIND_DTOH Device-to-Host
        3 CUDA_MEMCPY_KIND_HTOA Host-to-Array
        4 CUDA_MEMCPY_KIND_ATOH Array-to-Host
        5 CUDA_MEMCPY_KIND_ATOA Array-to-Array
        6 CUDA_MEMCPY_KIND_ATOD Array-to-Device
        7 CUDA_MEMCPY_KIND_DTOA Device-to-Array
        8 CUDA_MEMCPY_KIND_DTOD Device-to-Device
        9 CUDA_MEMCPY_KIND_HTOH Host-to-Host
        10 CUDA_MEMCPY_KIND_PTOP Peer-to-Peer
        11 CUDA_MEMCPY_KIND_UVM_HTOD Unified Host-to-Device
        12 CUDA_MEMCPY_KIND_UVM_DTOH Unified Device-to-Host
        13 CUDA_MEMCPY_KIND_UVM_DTOD Unified Device-to-Device
    """,
    "ENUM_CUDA_MEM_KIND": """
        0 CUDA_MEMOPR_MEMORY_KIND_PAGEABLE Pageable
        1 CUDA_MEMOPR_MEMORY_KIND_PINNED Pinned
        2 CUDA_MEMOPR_MEMORY_KIND_DEVICE Device
        3 CUDA_MEMOPR_MEMORY_KIND_ARRAY Array
        4 CUDA_MEMOPR_MEMORY_KIND_MANAGED Managed
        5 CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC Device Static
        6 CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC Managed Static
        7 CUDA_MEMOPR_MEMORY_KIND_UNKNOWN Unknown
    """,
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": """
        0 CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN Unknown
        1 CUDA_KERNEL_LAUNCH_TYPE_REGULAR Regular
        2 CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE Coop Single Device
        3 CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE Coop Multi Device
    """,
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": """
        0 CUDA_DEV_MEM_EVENT_OPR_ALLOCATION Allocation
        1 CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION Deallocation
    """,
    "ENUM_CUDA_MEMPOOL_OPER": """
        0 CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID Invalid
        1 CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED Created
        2 CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED Destroyed
        3 CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED Trimmed
    """,
    "ENUM_CUDA_MEMPOOL_TYPE": """
        0 CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID Invalid
        1 CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL Local
        2 CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED Imported
    """,
    "ENUM_CUDA_UNIF_MEM_MIGRATION": """
        0 CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_UNKNOWN Unknown
        1 CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_USER User prefetch
        2 CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE Page fault
        3 CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH Speculative prefetch
        4 CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION Eviction
        5 CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS Access counters
    """,
    "ENUM_CUDA_UNIF_MEM_ACCESS_TYPE": """
        0 CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_UNKNOWN Unknown
        1 CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_READ Read
        2 CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_WRITE Write
        3 CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_ATOMIC Atomic
        4 CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_PREFETCH Prefetch
    """,
    "ENUM_CUPTI_STREAM_TYPE": """
        0 CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN Unknown stream type
        1 CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT Default stream
        2 CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING Non-blocking stream
        3 CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL Null stream
    """,
    "ENUM_CUPTI_SYNC_TYPE": """
        0 CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN Unknown
        1 CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE Event sync
        2 CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT Stream wait sync
        3 CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE Stream sync
        4 CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE Context sync
    """,
    "ENUM_CUPTI_OVERHEAD_TYPE": """
        0 OVERHEAD_UNDEFINED Undefined
        1 OVERHEAD_UNKNOWN Unknown
        2 OVERHEAD_DRIVER_COMPILER Driver JIT compiler (CUDA)
        3 OVERHEAD_CUPTI_BUFFER_FLUSH Buffer flush (Profiler)
        4 OVERHEAD_CUPTI_INSTRUMENTATION Instrumentation (Profiler)
        5 OVERHEAD_CUPTI_RESOURCE Resource creation/destruction (Profiler)
        6 OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING Runtime module loading (CUDA)
        7 OVERHEAD_LAZY_FUNCTION_LOADING Lazy function loading (CUDA)
        8 OVERHEAD_COMMAND_BUFFER_FULL Command buffer full (CUDA)
    """,
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": """
        0 UnknownLevel Unknown
        1 Info Info
        2 Warning Warning
        3 Error Error
        4 Verbose Verbose
    """,
    "ENUM_DIAGNOSTIC_SOURCE_TYPE": """
        0 UnknownSource Unknown source
        1 Injection Injection
        2 Daemon Daemon
        3 Analysis Analysis
    """,
    "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE": """
        0 UnknownTimestamp Unknown timestamp
        1 TargetTimestamp Target timestamp
        2 HostTimestamp Host timestamp
    """,
    "ENUM_NSYS_EVENT_TYPE": """
        33 NvtxCategory NvtxCategory
        34 NvtxMark NvtxMark
        39 NvtxThread NvtxThread
        59 NvtxPushPopRange NvtxPushPopRange
        60 NvtxStartEndRange NvtxStartEndRange
        75 NvtxDomainCreate NvtxDomainCreate
    """,
    "ENUM_NSYS_EVENT_CLASS": """
        0 TRACE_PROCESS_EVENT_CUDA_RUNTIME CUDA runtime
        1 TRACE_PROCESS_EVENT_CUDA_DRIVER CUDA driver
        27 TRACE_PROCESS_EVENT_OS_RUNTIME OSRT runtime
        67 TRACE_PROCESS_EVENT_CUDABACKTRACE CUDA backtrace
        78 TRACE_PROCESS_EVENT_OPENMP OpenMP
        102 TRACE_PROCESS_EVENT_CUDA_JIT CUDA JIT
        103 TRACE_PROCESS_EVENT_CUDA_OVERHEAD CUDA overhead
    """,
    "ENUM_SAMPLING_THREAD_STATE": """
        0 Unknown Unknown
        1 Running Running
        6 Unscheduled Unscheduled
        7 Waiting Waiting
        8 OsRuntime OS runtime
    """,
}


def write(writer: Writer, more: dict[str, dict[int, str]]) -> None:
    """Write the tables; `more`: labels of others, such as the reasons why threads stopped."""
    for table, text in _TABLES.items():
        lines = [line.split(" ", 2) for line in map(str.strip, text.split("\n")) if line]
        _write(writer, table, [(int(number), name, label) for number, name, label in lines])
    for table, labels in {
        "ENUM_OSRT_FILE_ACCESS_EVENT_TYPE": dict(enumerate(FILE_OPERATIONS)),
        **more,
    }.items():
        _write(writer, table, [(number, label.replace(" ", "_"), label) for number, label in labels.items()])


def _write(writer: Writer, table: str, rows: list[tuple[int, str, str]]) -> None:
    made = f'CREATE TABLE "{table}" ("id" INTEGER NOT NULL PRIMARY KEY, "name" TEXT, "label" TEXT)'
    numbers, names, labels = zip(*rows, strict=True)
    writer.write(table, {"id": list(numbers), "name": list(names), "label": list(labels)}, made)
