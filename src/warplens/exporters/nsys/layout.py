"""The tables of an export of Nsight Systems, schema 3.28.1: their columns in order.

A column is `name` and what it is: `$` text, `%` real, else integer; `!` never null, `*` primary key.
"""

from __future__ import annotations

SCHEMA = (3, 28, 1)
TABLES: dict[str, str] = {
    "StringIds": "id* value$!",
    "PROCESSES": "globalPid pid name$",
    "ThreadNames": "nameId! priority globalTid",
    "META_DATA_CAPTURE": "name$! value$",
    "META_DATA_EXPORT": "name$! value$",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime$ localTime$ systemClockNs sessionStartCntVctNs",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName$! name$! nameEnum! value$!",
    "TARGET_INFO_GPU": (
        "vmId! id! name$ busLocation$ isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId uuid$ luid "
        "chipName$ cuDevice ctxswDevPath$ ctrlDevPath$ revision nodeMask constantMemory maxIPC maxRegistersPerBlock "
        "maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm "
        "maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ "
        "computeMajor computeMinor smMajor smMinor numaNodeId"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid$ numMultiprocessors",
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext numMultiprocessors numTpcs "
        "tpcMask$ workqueueResourceId workqueueConcurrencyLimit workqueueSharingScope workqueueChannelCount workqueueChannelIds$"
    ),
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "TARGET_INFO_NVTX_CUDA_DEVICE": "name$! hwId! vmId! deviceId!",
    "TARGET_INFO_NVTX_CUDA_CONTEXT": "name$! hwId! vmId! processId! deviceId! contextId!",
    "TARGET_INFO_NVTX_CUDA_STREAM": "name$! hwId! vmId! processId! deviceId! contextId! streamId!",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName$! metricId! metricName$!",
    "GPU_METRICS": "rawTimestamp! timestamp! typeId! metricId! value!",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text$! globalPid",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! mangledName "
        "launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! "
        "dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId "
        "sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ "
        "clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters sharedMemoryRequestedPercentage "
        "tensorSizeMinusOneElements$!"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId "
        "srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress copyCount"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid value! bytes! graphNodeId memKind"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid graphId! graphExecId!"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid deprecatedSyncType syncType! eventId! "
        "eventSyncId"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "timestamp deviceId! contextId! greenContextId streamId! correlationId globalPid eventId! eventSyncId"
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start! end! eventClass! globalTid correlationId nameId overheadType!",
    "CUPTI_ACTIVITY_KIND_JIT": (
        "start! end! eventClass! globalTid correlationId nameId overheadType! jitEntryType! jitOperationType! deviceId "
        "jitOperationCorrelationId cacheSize cachePath$"
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! name$ correlationId streamId "
        "localMemoryPoolAddress localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize "
        "importedMemoryPoolAddress importedMemoryPoolProcessId"
    ),
    "CUDA_GPU_MEMORY_POOL_EVENTS": (
        "start! globalPid! deviceId! address! operationType! poolType! correlationId minBytesToKeep "
        "localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize"
    ),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": (
        "start! globalPid! address! originalFaultPc CpuInstruction! module! unresolvedFaultPc sourceFile sourceLine"
    ),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "start! end! globalPid! deviceId! address! numberOfPageFaults! faultAccessType!",
    "CUDA_CALLCHAINS": "id! symbol! module! unresolved originalIP stackDepth!",
    "NVTX_EVENTS": (
        "start! end eventType! rangeId category color text$ globalTid endGlobalTid textId domainId uint64Value int64Value "
        "doubleValue% uint32Value int32Value floatValue% jsonTextId jsonText$ binaryData$ eventId*"
    ),
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name$ type flags numEntries payloadSize alignTo",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId! schemaId! idx! flags type name$ description$ arrayOrUnionDetail offset",
    "NVTX_PAYLOAD_ENUMS": "domainId schemaId name$ numEntries size",
    "NVTX_PAYLOAD_ENUM_ENTRIES": "domainId! schemaId! idx! name$ value isFlag",
    "NVTX_EVENTS_PAYLOAD_SCHEMAS": "eventId! globalPid! domainId! payloadSchemaID!",
    "OSRT_API": "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId! argumentsId!",
    "OSRT_CALLCHAINS": "id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!",
    "OSRT_FILE_ACCESS_EVENTS": "fileAccessId! threadId! startedAt! endedAt! eventType! apiCallId! bytesProcessed! context$!",
    "OSRT_FILE_ACCESS_DESCRIPTORS": "fileAccessId! processId! openedAt! closedAt! filePath$!",
    "COMPOSITE_EVENTS": "id* start! cpu threadState globalTid cpuCycles!",
    "SAMPLING_CALLCHAINS": "id! symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!",
    "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid threadState threadBlock",
    "SYSCALL": "start! end! eventClass! globalTid nameId! callchainId!",
    "SYSCALL_CALLCHAINS": "id! stackDepth! symbol! module! unresolved",
    "MPI_RANKS": "globalTid! rank!",
    "MPI_P2P_EVENTS": "start! end globalTid textId commHandle commUid tag remoteRank size requestHandle",
    "MPI_COLLECTIVES_EVENTS": "start! end globalTid textId commHandle commUid rootRank size recvSize requestHandle",
    "MPI_START_WAIT_EVENTS": "start! end globalTid textId requestHandle",
    "MPI_OTHER_EVENTS": "start! end globalTid textId",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": (
        "start! end! nameId! globalTid eventKind! DeviceType! lineNo! cuDeviceId! cuContextId! cuStreamId! srcFile funcName "
        "correlationId bytes varName"
    ),
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": (
        "start! end! nameId! globalTid eventKind! DeviceType! lineNo! cuDeviceId! cuContextId! cuStreamId! srcFile funcName "
        "correlationId numGangs numWorkers vectorLength kernelName"
    ),
    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": (
        "start! end! nameId! globalTid eventKind! DeviceType! lineNo! cuDeviceId! cuContextId! cuStreamId! srcFile funcName correlationId"
    ),
    "OPENMP_EVENT_KIND_THREAD": "start! end! eventClass! globalTid correlationId nameId! eventKind threadId threadType",
    "OPENMP_EVENT_KIND_PARALLEL": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId parentTaskId",
    "OPENMP_EVENT_KIND_SYNC_REGION_WAIT": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId kind",
    "OPENMP_EVENT_KIND_SYNC_REGION": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId kind",
    "OPENMP_EVENT_KIND_TASK": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId kind",
    "OPENMP_EVENT_KIND_MASTER": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId",
    "OPENMP_EVENT_KIND_REDUCTION": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId",
    "OPENMP_EVENT_KIND_TASK_CREATE": "start! end! eventClass! globalTid correlationId nameId! eventKind parentTaskId newTaskId",
    "OPENMP_EVENT_KIND_TASK_SCHEDULE": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId priorTaskId priorTaskStatus nextTaskId"
    ),
    "OPENMP_EVENT_KIND_CANCEL": "start! end! eventClass! globalTid correlationId nameId! eventKind taskId",
    "OPENMP_EVENT_KIND_MUTEX_WAIT": "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId taskId",
    "OPENMP_EVENT_KIND_CRITICAL_SECTION": "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId",
    "OPENMP_EVENT_KIND_MUTEX_RELEASED": "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId taskId",
    "OPENMP_EVENT_KIND_LOCK_INIT": "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId",
    "OPENMP_EVENT_KIND_LOCK_DESTROY": "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId",
    "OPENMP_EVENT_KIND_WORKSHARE": "start! end! eventClass! globalTid correlationId nameId! eventKind kind parallelId taskId count",
    "OPENMP_EVENT_KIND_DISPATCH": "start! end! eventClass! globalTid correlationId nameId! eventKind kind parallelId taskId",
    "OPENMP_EVENT_KIND_FLUSH": "start! end! eventClass! globalTid correlationId nameId! eventKind threadId",
}


def columns(table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [word.rstrip("$%!*") for word in TABLES[table].split()]


def definition(table: str) -> str:
    """Return the SQL that makes a table."""
    declared = []
    for word in TABLES[table].split():
        kind = "TEXT" if "$" in word else "REAL" if "%" in word else "INTEGER"
        rule = " NOT NULL PRIMARY KEY" if "*" in word else " NOT NULL" if "!" in word else ""
        declared.append(f'"{word.rstrip("$%!*")}" {kind}{rule}')
    return f'CREATE TABLE "{table}" ({", ".join(declared)})'
