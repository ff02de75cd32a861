"""The tables `ENUM_…`: what nsys' numbers are called, for those numbers that our exports hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpline.model import nsys_labels as labels

if TYPE_CHECKING:
    from warpline.exporters.nsys.database import Writer

# Where nsys says it in other words than a report.
_EVENT_CLASSES = {
    0: "CUDA runtime",
    1: "CUDA driver",
    27: "OS runtime",
    67: "CUDA backtrace",
    78: "OpenMP",
    102: "JIT",
    103: "Overhead",
}
_EVENT_TYPES = {
    33: "NvtxCategory",
    34: "NvtxMark",
    39: "NvtxThread",
    59: "NvtxPushPopRange",
    60: "NvtxStartEndRange",
    75: "NvtxDomainCreate",
}
_MIGRATION = {0: "Unknown", 1: "User prefetch", 2: "Page fault", 3: "Speculative prefetch", 4: "Eviction", 5: "Access counters"}
TABLES: dict[str, dict[int, str]] = {
    "ENUM_NSYS_EVENT_TYPE": _EVENT_TYPES,
    "ENUM_NSYS_EVENT_CLASS": _EVENT_CLASSES,
    "ENUM_CUDA_MEMCPY_OPER": labels.COPY_KINDS,
    "ENUM_CUDA_MEM_KIND": labels.MEMORY_KINDS,
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": {0: "Unknown", 1: "Regular", 2: "Coop Single Device", 3: "Coop Multi Device"},
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": {0: "Allocation", 1: "Deallocation"},
    "ENUM_CUDA_MEMPOOL_OPER": {0: "Invalid", 1: "Created", 2: "Destroyed", 3: "Trimmed"},
    "ENUM_CUDA_MEMPOOL_TYPE": {0: "Invalid", 1: "Local", 2: "Imported"},
    "ENUM_CUDA_UNIF_MEM_MIGRATION": _MIGRATION,
    "ENUM_CUDA_UNIF_MEM_ACCESS_TYPE": {0: "Unknown", 1: "Read", 2: "Write", 3: "Atomic", 4: "Prefetch"},
    "ENUM_CUPTI_STREAM_TYPE": {0: "Unknown stream type", 1: "Default stream", 2: "Non-blocking stream", 3: "Null stream"},
    "ENUM_CUPTI_SYNC_TYPE": {0: "Unknown", 1: "Event sync", 2: "Stream wait sync", 3: "Stream sync", 4: "Context sync"},
    "ENUM_CUPTI_OVERHEAD_TYPE": labels.OVERHEAD_KINDS,
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": {0: "Unknown", 1: "Info", 2: "Warning", 3: "Error", 4: "Verbose"},
    "ENUM_DIAGNOSTIC_SOURCE_TYPE": {0: "Unknown source", 1: "Injection", 2: "Daemon", 3: "Analysis"},
    "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE": {0: "Unknown timestamp", 1: "Target timestamp", 2: "Host timestamp"},
    "ENUM_SAMPLING_THREAD_STATE": {0: "Unknown", 1: "Running", 6: "Unscheduled", 7: "Waiting", 8: "OS runtime"},
    "ENUM_OSRT_FILE_ACCESS_EVENT_TYPE": dict(enumerate(labels.FILE_OPERATIONS)),
}


def write(writer: Writer, more: dict[str, dict[int, str]]) -> None:
    """Write the tables; `more`: others, such as the reasons why threads stopped."""
    for table, values in {**TABLES, **more}.items():
        made = f'CREATE TABLE "{table}" ("id" INTEGER NOT NULL PRIMARY KEY, "name" TEXT, "label" TEXT)'
        texts = list(values.values())
        writer.write(table, {"id": list(values), "name": [text.replace(" ", "_") for text in texts], "label": texts}, made)
