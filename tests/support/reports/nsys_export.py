"""Makes SQLite files as the exports of Nsight Systems were at different times; a column is there in the versions that had it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Version = tuple[int, int]
# Schema versions of real files; (0, 0) stands for the time of .qdrep files, which do not say theirs.
ERAS: tuple[Version, ...] = (
    (0, 0),
    (2, 9),
    (3, 0),
    (3, 1),
    (3, 4),
    (3, 11),
    (3, 17),
    (3, 20),
    (3, 24),
    (3, 25),
    (3, 28),
    (3, 30),
)
MACHINE = 1 << 48
SECRET = "TOKEN-of-somebody-0123456789"

_GPU_WORK = "start end deviceId contextId greenContextId@3.11 streamId correlationId globalPid"
_CALL = "start end eventClass globalTid correlationId"
_CHAIN = "id symbol module kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth"
_ACC = "start end nameId globalTid eventKind DeviceType lineNo cuDeviceId cuContextId cuStreamId srcFile funcName correlationId bytes"
# `name@since-until`: text columns end in $, real ones in %.
TABLES: dict[str, str] = {
    "StringIds": "id value$",
    "PROCESSES@2.9": "globalPid pid name$",
    "ThreadNames": "nameId priority globalTid",
    "ProcessStreams": "globalPid filenameId contentId",
    "ANALYSIS_FILE@2.9": "id filename$ contentId@3.17 content$@2.9-3.11 globalPid",
    "EXPORT_META_DATA@2.9-3.1": "name$ value$",
    "META_DATA_EXPORT@3.4": "name$ value$",
    "META_DATA_CAPTURE": "name$ value$",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime$ localTime$",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName$ name$ nameEnum value$",
    "TARGET_INFO_GPU@2.9": "vmId id name$ busLocation$@2.9 l2CacheSize@2.9 totalMemory@2.9 memoryBandwidth@2.9 clockRate@2.9 "
    "smCount@2.9 uuid$@2.9 cuDevice@2.9 computeMajor@2.9 computeMinor@2.9",
    "TARGET_INFO_CUDA_GPU@0.0-2.0": "deviceId name$ numMultiprocessors computeCapabilityMajor computeCapabilityMinor",
    "TARGET_INFO_CUDA_DEVICE@2.9": "gpuId cudaId pid uuid$@3.24 numMultiprocessors@3.24",
    "TARGET_INFO_CUDA_NULL_STREAM@0.0-3.4": "nullStreamId hwId vmId processId deviceId contextId",
    "TARGET_INFO_CUDA_CONTEXT_INFO@3.11": "nullStreamId hwId vmId processId deviceId contextId parentContextId isGreenContext",
    "TARGET_INFO_CUDA_STREAM": "streamId hwId vmId processId contextId priority flag",
    "TARGET_INFO_NVTX_CUDA_DEVICE": "name$ hwId vmId deviceId",
    "TARGET_INFO_NVTX_CUDA_CONTEXT": "name$ hwId vmId processId deviceId contextId",
    "TARGET_INFO_NVTX_CUDA_STREAM": "name$ hwId vmId processId deviceId contextId streamId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": f"{_CALL} nameId returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_GPU_WORK} demangledName shortName mangledName@2.9 launchType cacheConfig registersPerThread "
    "gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId "
    "sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig graphId@2.9 clusterX@3.24 clusterY@3.24 clusterZ@3.24 "
    "tensorSizeMinusOneElements$@3.25",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_GPU_WORK} bytes copyKind srcKind dstKind srcDeviceId dstDeviceId migrationCause graphNodeId "
    "virtualAddress@2.9 copyCount@3.17",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_GPU_WORK} value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_GPU_WORK} deprecatedSyncType@3.25 syncType eventId eventSyncId@3.4",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "timestamp@3.11 deviceId contextId streamId correlationId globalPid eventId eventSyncId@3.11",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE@2.9": f"{_GPU_WORK} graphId graphExecId",
    "CUPTI_ACTIVITY_KIND_OVERHEAD@3.11": f"{_CALL} nameId overheadType",
    "CUPTI_ACTIVITY_KIND_JIT@3.20": f"{_CALL} nameId overheadType jitEntryType jitOperationType",
    "PROFILER_OVERHEAD": "start end globalTid nameId returnValue@0.0-3.20 overheadType@3.24",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start globalPid deviceId contextId address pc bytes memKind memoryOperationType name$ correlationId "
    "streamId localMemoryPoolAddress localMemoryPoolSize localMemoryPoolUtilizedSize",
    "CUDA_GPU_MEMORY_POOL_EVENTS@3.0": "start globalPid deviceId address operationType poolType correlationId minBytesToKeep "
    "localMemoryPoolSize localMemoryPoolUtilizedSize",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "start globalPid address originalFaultPc CpuInstruction module",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "start end globalPid deviceId address numberOfPageFaults faultAccessType",
    "NVTX_EVENTS": "start end eventType rangeId category color text$ globalTid endGlobalTid textId domainId uint64Value int64Value "
    "doubleValue% uint32Value int32Value floatValue% jsonTextId jsonText$ binaryData$@3.4 eventId@3.28",
    "NVTX_PAYLOAD_SCHEMAS@3.4": "domainId schemaId name$ type flags numEntries payloadSize alignTo",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES@3.4": "domainId schemaId idx flags type name$ description$ arrayOrUnionDetail offset",
    "NVTX_EVENTS_PAYLOAD_SCHEMAS@3.28": "eventId globalPid domainId payloadSchemaID",
    "GPU_METRICS": "rawTimestamp timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName$ metricId metricName$",
    "MPI_RANKS@3.0": "globalTid rank",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text$ globalPid",
    "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId argumentsId@3.24",
    "OSRT_CALLCHAINS": _CHAIN,
    "SAMPLING_CALLCHAINS": _CHAIN,
    "CUDA_CALLCHAINS": "id symbol module unresolved originalIP stackDepth",
    "OSRT_FILE_ACCESS_EVENTS@3.11": "fileAccessId threadId startedAt endedAt eventType apiCallId bytesProcessed context$",
    "OSRT_FILE_ACCESS_DESCRIPTORS@3.11": "fileAccessId processId openedAt closedAt filePath$",
    "COMPOSITE_EVENTS": "id start cpu threadState globalTid cpuCycles",
    "SCHED_EVENTS": "start cpu isSchedIn globalTid threadState@3.4 threadBlock@3.4",
    "MPI_P2P_EVENTS@3.0": "start end globalTid textId commHandle commUid@3.17 tag remoteRank size requestHandle",
    "MPI_COLLECTIVES_EVENTS@3.0": "start end globalTid textId commHandle commUid@3.17 rootRank size recvSize requestHandle",
    "MPI_START_WAIT_EVENTS@3.0": "start end globalTid textId requestHandle",
    "MPI_OTHER_EVENTS@3.0": "start end globalTid textId",
    "OPENMP_EVENT_KIND_PARALLEL": f"{_CALL} nameId eventKind parallelId parentTaskId",
    "OPENMP_EVENT_KIND_SYNC_REGION_WAIT": f"{_CALL} nameId eventKind parallelId taskId kind",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": _ACC,
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": _ACC,
    "SYSCALL@3.28": "start end eventClass globalTid nameId callchainId",
    "SYSCALL_CALLCHAINS@3.28": "id stackDepth symbol module unresolved",
    "CUDNN_EVENTS": "start end eventClass globalTid nameId",
    "UnwindMethodType@3.0-3.0": "number name$",
    "ENUM_CUDA_KRENEL_LAUNCH_TYPE@2.9-3.1": "id name$ label$",
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE@3.4": "id name$ label$",
}


class Export:
    """One file: rows are added with the columns of the latest version, those that its own version lacks are left out."""

    def __init__(self, era: Version = ERAS[-1]) -> None:
        self.era = era
        self.columns: dict[str, list[str]] = {}
        self.types: dict[str, str] = {}
        for head, text in TABLES.items():
            name, there = self._there(head)
            if there:
                found = [self._there(column) for column in text.split()]
                self.columns[name] = [column.rstrip("$%") for column, known in found if known]
                self.types |= {
                    f"{name}.{column.rstrip('$%')}": {"$": "TEXT", "%": "REAL"}.get(column[-1], "INTEGER")
                    for column, _ in found
                }
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}

    def string(self, text: str) -> int:
        """Return the number of a text in `StringIds`."""
        if text not in self._strings:
            self._strings[text] = 1000 + len(self._strings)
            self.add("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def add(self, table: str, **values: Any) -> None:
        """Add a row."""
        self.rows.setdefault(table, []).append(values)

    def has(self, table: str, column: str | None = None) -> bool:
        """Say whether this version has the table, or the column."""
        return table in self.columns and (column is None or column in self.columns[table])

    def write(self, path: Path) -> Path:
        """Write the file: as nsys does, only tables that hold something (and StringIds)."""
        connection = sqlite3.connect(path)
        for table, columns in self.columns.items():
            rows = self.rows.get(table, [])
            if not rows and table != "StringIds":
                continue
            declared = ", ".join(f'"{column}" {self.types[f"{table}.{column}"]}' for column in columns)
            connection.execute(f'CREATE TABLE "{table}" ({declared})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f'INSERT INTO "{table}" VALUES ({marks})',
                [[row.get(column) for column in columns] for row in rows],
            )
        connection.commit()
        connection.close()
        return path

    def _there(self, text: str) -> tuple[str, bool]:
        name, _, span = text.partition("@")
        since, _, until = span.partition("-")
        return name, (not since or self.era >= _version(since)) and (not until or self.era <= _version(until))


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def global_id(pid: int, tid: int = 0) -> int:
    """Return nsys' number of a process, or of a thread in it."""
    return MACHINE | pid << 24 | tid


def call(
    export: Export,
    name: str,
    start: int,
    end: int,
    correlation: int,
    tid: tuple[int, int] = (100, 100),
    **more: Any,
) -> None:
    """Add an API call."""
    row = {
        "start": start,
        "end": end,
        "eventClass": 0,
        "globalTid": global_id(*tid),
        "correlationId": correlation,
        "returnValue": 0,
    }
    export.add("CUPTI_ACTIVITY_KIND_RUNTIME", **{**row, "nameId": export.string(name), **more})


def work(
    kind: str, export: Export, start: int, end: int, correlation: int, pid: int = 100, **more: Any
) -> None:
    """Add what a GPU did, e.g. of the kind `MEMCPY`."""
    row = {
        "start": start,
        "end": end,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": correlation,
    }
    export.add(f"CUPTI_ACTIVITY_KIND_{kind}", **{**row, "globalPid": global_id(pid), **more})


def kernel(export: Export, name: str, start: int, end: int, correlation: int, **more: Any) -> None:
    """Add a kernel called `void ns::NAME<int>(int)`."""
    sizes = {
        "gridX": 8,
        "gridY": 2,
        "gridZ": 1,
        "blockX": 128,
        "blockY": 1,
        "blockZ": 1,
        "registersPerThread": 32,
        "launchType": 1,
    }
    memory = {
        "staticSharedMemory": 64,
        "dynamicSharedMemory": 1024,
        "localMemoryPerThread": 0,
        "localMemoryTotal": 4096,
    }
    names = {"shortName": name, "demangledName": f"void ns::{name}<int>(int)", "mangledName": f"_ZN2ns{name}"}
    numbers = {column: export.string(text) for column, text in names.items()}
    work(
        "KERNEL",
        export,
        start,
        end,
        correlation,
        **{**sizes, **memory, **numbers, "sharedMemoryExecuted": 2048, **more},
    )


def nvtx(
    export: Export,
    kind: int,
    start: int,
    end: int | None = None,
    tid: tuple[int, int] = (100, 100),
    **more: Any,
) -> None:
    """Add a row of `NVTX_EVENTS`."""
    row = {"start": start, "end": end, "eventType": kind, "globalTid": global_id(*tid), "domainId": 0}
    export.add("NVTX_EVENTS", **{**row, "eventId": len(export.rows.get("NVTX_EVENTS", ())), **more})


def chain(export: Export, table: str, number: int, *frames: tuple[str, str], kernel: int = 0) -> None:
    """Add a call chain: symbols and modules, the outermost first; the innermost `kernel` of them are the kernel's."""
    for depth, (symbol, module) in enumerate(reversed(frames)):
        names = {
            "symbol": export.string(symbol),
            "module": export.string(module),
            "kernelMode": int(depth < kernel),
        }
        export.add(table, id=number, **names, unresolved=0, originalIP=0x1000 + len(symbol), stackDepth=depth)


def settings(export: Export, values: Mapping[str, str]) -> None:
    """Add names and values of the capture."""
    for name, value in values.items():
        export.add("META_DATA_CAPTURE", name=name, value=value)
