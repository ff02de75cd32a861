"""Maps each declaration in native/drivers/cupti.h to its NVIDIA name.

Tools/cupti_abi.py compares them.
"""

from __future__ import annotations

# Our type: the record's name without its number, then our fields with NVIDIA's names and, where it is not in all versions, since when.
RECORDS: dict[str, tuple[str, str]] = {
    "CuptiApiActivity": (
        "API",
        "kind cbid start end pid=processId tid=threadId correlation=correlationId result=returnValue",
    ),
    "CuptiKernelActivity": (
        "Kernel",
        "kind cache_config=cacheConfig shared_config=sharedMemoryConfig registers=registersPerThread start end completed device=deviceId"
        " context=contextId stream=streamId grid[0]=gridX grid[1]=gridY grid[2]=gridZ block[0]=blockX block[1]=blockY block[2]=blockZ"
        " static_shared=staticSharedMemory dynamic_shared=dynamicSharedMemory local_per_thread=localMemoryPerThread"
        " local_total_32=localMemoryTotal correlation=correlationId grid_id=gridId name queued submitted launch_type=launchType"
        " shared_executed=sharedMemoryExecuted graph_node=graphNodeId graph=graphId channel=channelID cluster[0]=clusterX"
        " cluster[1]=clusterY cluster[2]=clusterZ local_total=localMemoryTotal_v2",
    ),
    "CuptiMemcpyActivity": (
        "Memcpy",
        "kind copy_kind=copyKind source_kind=srcKind destination_kind=dstKind flags bytes start end device=deviceId context=contextId"
        " stream=streamId correlation=correlationId runtime_correlation=runtimeCorrelationId graph_node=graphNodeId graph=graphId"
        " channel=channelID copies=copyCount@kCuptiSinceCopies",
    ),
    "CuptiPeerCopyActivity": (
        "MemcpyPtoP",
        "kind copy_kind=copyKind source_kind=srcKind destination_kind=dstKind flags bytes start end device=deviceId context=contextId"
        " stream=streamId source_device=srcDeviceId source_context=srcContextId destination_device=dstDeviceId"
        " destination_context=dstContextId correlation=correlationId graph_node=graphNodeId graph=graphId channel=channelID",
    ),
    "CuptiMemsetActivity": (
        "Memset",
        "kind value bytes start end device=deviceId context=contextId stream=streamId correlation=correlationId flags"
        " memory_kind=memoryKind graph_node=graphNodeId graph=graphId channel=channelID",
    ),
    "CuptiSynchronizationActivity": (
        "Synchronization",
        "kind type start end correlation=correlationId context=contextId stream=streamId event=cudaEventId"
        " event_sync=cudaEventSyncId@kCuptiSinceEventSync result=returnValue@kCuptiSinceEventSync",
    ),
    "CuptiCudaEventActivity": (
        "CudaEvent",
        "kind correlation=correlationId context=contextId stream=streamId event=eventId device=deviceId@kCuptiSinceEventSync"
        " device_time=deviceTimestamp@kCuptiSinceEventSync event_sync=cudaEventSyncId@kCuptiSinceEventSync",
    ),
    "CuptiMemoryActivity": (
        "Memory",
        "kind operation=memoryOperationType memory_kind=memoryKind correlation=correlationId address bytes time=timestamp pc=PC"
        " pid=processId device=deviceId context=contextId stream=streamId name asynchronous=isAsync"
        " pool_kind=memoryPoolConfig.memoryPoolType pool=memoryPoolConfig.address pool_threshold=memoryPoolConfig.releaseThreshold"
        " pool_size=memoryPoolConfig.pool.size pool_used=memoryPoolConfig.utilizedSize source@kCuptiSinceAllocationSource",
    ),
    "CuptiMemoryPoolActivity": (
        "MemoryPool",
        "kind operation=memoryPoolOperationType pool_kind=memoryPoolType correlation=correlationId pid=processId device=deviceId"
        " bytes_to_keep=minBytesToKeep address size threshold=releaseThreshold time=timestamp used=utilizedSize",
    ),
    "CuptiExternalActivity": (
        "ExternalCorrelation",
        "kind external_kind=externalKind external=externalId correlation=correlationId",
    ),
    "CuptiOverheadActivity": (
        "Overhead",
        "kind overhead_kind=overheadKind object_kind=objectKind object=objectId start end"
        " correlation=correlationId@kCuptiSinceOverheadCorrelation",
    ),
    "CuptiGraphActivity": (
        "GraphTrace",
        "kind correlation=correlationId start end device=deviceId graph=graphId context=contextId stream=streamId",
    ),
    "CuptiUmActivity": (
        "UnifiedMemoryCounter",
        "kind counter=counterKind value start end address source=srcId destination=dstId stream=streamId pid=processId flags",
    ),
    "CuptiJitActivity": (
        "Jit",
        "kind entry=jitEntryType operation=jitOperationType device=deviceId start end correlation=correlationId"
        " operation_correlation=jitOperationCorrelationId cache_size=cacheSize cache_path=cachePath"
        " pid=processId@kCuptiSinceJitThread tid=threadId@kCuptiSinceJitThread",
    ),
    "CuptiDeviceActivity": (
        "Device",
        "kind flags memory_bandwidth=globalMemoryBandwidth memory=globalMemorySize l2_size=l2CacheSize clock=coreClockRate"
        " copy_engines=numMemcpyEngines multiprocessors=numMultiprocessors major=computeCapabilityMajor minor=computeCapabilityMinor"
        " device=id ecc=eccEnabled uuid name visible=isCudaVisible mig=isMigEnabled gpu_instance=gpuInstanceId"
        " compute_instance=computeInstanceId mig_uuid=migUuid",
    ),
    "CuptiContextActivity": (
        "Context",
        "kind context=contextId device=deviceId api=computeApiKind null_stream=nullStreamId",
    ),
    "CuptiStreamActivity": (
        "Stream",
        "kind context=contextId stream=streamId priority flag correlation=correlationId",
    ),
}

# Structures that are no records, and whether every field must be at the same place: ours, NVIDIA's.
STRUCTURES: dict[str, tuple[str, str]] = {
    "CuptiUmConfig": ("CUpti_ActivityUnifiedMemoryCounterConfig", "scope kind device=deviceId enable"),
    "CuptiCallbackData": (
        "CUpti_CallbackData",
        "site=callbackSite function=functionName parameters=functionParams result=functionReturnValue symbol=symbolName context"
        " context_id=contextUid correlation_data=correlationData correlation=correlationId",
    ),
    "CuptiResourceData": (
        "CUpti_ResourceData",
        "context stream=resourceHandle.stream descriptor=resourceDescriptor",
    ),
    "CuptiGraphData": ("CUpti_GraphData", "graph original=originalGraph node original_node=originalNode"),
    "CuptiModuleData": ("CUpti_ModuleResourceData", "module=moduleId size=cubinSize cubin=pCubin"),
    "CuptiStateData": ("CUpti_StateData", "result=notification.result message=notification.message"),
    "CuptiSubscriberParams": (
        "CUpti_SubscriberParams",
        "size=structSize name=subscriberName other_name=oldSubscriberName other_name_size=oldSubscriberSize"
        " allow_several=allowMultipleSubscribers@130200",
    ),
    "CuptiRequestInfo": ("CUpti_BufferCallbackRequestInfo", "size=structSize"),
    "CuptiCompleteInfo": (
        "CUpti_BufferCallbackCompleteInfo",
        "size=structSize thread=threadId layouts=ppRecordLayouts layout_count=numRecordLayouts",
    ),
}

_KIND = "CUPTI_ACTIVITY_KIND_"
_ATTRIBUTE = "CUPTI_ACTIVITY_ATTR_"
_UM = "CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_"
_DRIVER = "CUPTI_DRIVER_TRACE_CBID_"
_RUNTIME = "CUPTI_RUNTIME_TRACE_CBID_"
_RESOURCE = "CUPTI_CBID_RESOURCE_"
_ERROR = "CUPTI_ERROR_"

CONSTANTS: dict[str, str] = {
    "kCuptiSuccess": "CUPTI_SUCCESS",
    "kCuptiInvalidParameter": _ERROR + "INVALID_PARAMETER",
    "kCuptiInvalidOperation": _ERROR + "INVALID_OPERATION",
    "kCuptiMaxLimitReached": _ERROR + "MAX_LIMIT_REACHED",
    "kCuptiNotCompatible": _ERROR + "NOT_COMPATIBLE",
    "kCuptiNotInitialized": _ERROR + "NOT_INITIALIZED",
    "kCuptiInvalidKind": _ERROR + "INVALID_KIND",
    "kCuptiNotSupported": _ERROR + "NOT_SUPPORTED",
    "kCuptiUmNotSupported": _ERROR + "UM_PROFILING_NOT_SUPPORTED",
    "kCuptiUmNotSupportedOnDevice": _ERROR + "UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "kCuptiUmNotSupportedWithoutPeers": _ERROR + "UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
    "kCuptiUmNotSupportedWithMps": _ERROR + "UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    "kCuptiVirtualizedDevice": _ERROR + "VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "kCuptiInsufficientPrivileges": _ERROR + "INSUFFICIENT_PRIVILEGES",
    "kCuptiOldProfiler": _ERROR + "OLD_PROFILER_API_INITIALIZED",
    "kCuptiMultipleSubscribers": _ERROR + "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "kCuptiVirtualizedDevicePrivileges": _ERROR + "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "kCuptiConfidentialComputing": _ERROR + "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "kCuptiMig": _ERROR + "MIG_DEVICE_NOT_SUPPORTED",
    "kCuptiWsl": _ERROR + "WSL_DEVICE_NOT_SUPPORTED",
    "kCuptiUnknown": _ERROR + "UNKNOWN",
    "kCuptiMemcpy": _KIND + "MEMCPY",
    "kCuptiMemset": _KIND + "MEMSET",
    "kCuptiKernel": _KIND + "KERNEL",
    "kCuptiDriver": _KIND + "DRIVER",
    "kCuptiRuntime": _KIND + "RUNTIME",
    "kCuptiDevice": _KIND + "DEVICE",
    "kCuptiContext": _KIND + "CONTEXT",
    "kCuptiConcurrentKernel": _KIND + "CONCURRENT_KERNEL",
    "kCuptiOverhead": _KIND + "OVERHEAD",
    "kCuptiMemcpyPeer": _KIND + "MEMCPY2",
    "kCuptiUmCounter": _KIND + "UNIFIED_MEMORY_COUNTER",
    "kCuptiCudaEvent": _KIND + "CUDA_EVENT",
    "kCuptiStream": _KIND + "STREAM",
    "kCuptiSynchronization": _KIND + "SYNCHRONIZATION",
    "kCuptiExternal": _KIND + "EXTERNAL_CORRELATION",
    "kCuptiMemory": _KIND + "MEMORY2",
    "kCuptiMemoryPool": _KIND + "MEMORY_POOL",
    "kCuptiGraph": _KIND + "GRAPH_TRACE",
    "kCuptiJit": _KIND + "JIT",
    "kCuptiObjectThread": "CUPTI_ACTIVITY_OBJECT_THREAD",
    "kCuptiObjectDevice": "CUPTI_ACTIVITY_OBJECT_DEVICE",
    "kCuptiObjectContext": "CUPTI_ACTIVITY_OBJECT_CONTEXT",
    "kCuptiObjectStream": "CUPTI_ACTIVITY_OBJECT_STREAM",
    "kCuptiUmHostToDevice": _UM + "BYTES_TRANSFER_HTOD",
    "kCuptiUmDeviceToHost": _UM + "BYTES_TRANSFER_DTOH",
    "kCuptiUmCpuFaults": _UM + "CPU_PAGE_FAULT_COUNT",
    "kCuptiUmGpuFaults": _UM + "GPU_PAGE_FAULT",
    "kCuptiUmThrashing": _UM + "THRASHING",
    "kCuptiUmThrottling": _UM + "THROTTLING",
    "kCuptiUmRemoteMap": _UM + "REMOTE_MAP",
    "kCuptiUmDeviceToDevice": _UM + "BYTES_TRANSFER_DTOD",
    "kCuptiDeviceBufferSize": _ATTRIBUTE + "DEVICE_BUFFER_SIZE",
    "kCuptiDeviceBufferPoolLimit": _ATTRIBUTE + "DEVICE_BUFFER_POOL_LIMIT",
    "kCuptiZeroedOutBuffer": _ATTRIBUTE + "ZEROED_OUT_ACTIVITY_BUFFER",
    "kCuptiPerThreadBuffer": _ATTRIBUTE + "PER_THREAD_ACTIVITY_BUFFER",
    "kCuptiAllocationSource": _ATTRIBUTE + "ENABLE_ALLOCATION_SOURCE_TRACKING",
    "kCuptiEventTimes": _ATTRIBUTE + "ENABLE_CUDA_EVENT_DEVICE_TIMESTAMPS",
    "kCuptiSeveralGraphTrace": _ATTRIBUTE + "ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE",
    "kCuptiThreadIdType": _ATTRIBUTE + "THREAD_ID_TYPE",
    "kCuptiTimestamps": _ATTRIBUTE + "TIMESTAMP_CALLBACK",
    "kCuptiThreadIdSystem": "CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM",
    "kCuptiFlushForced": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED",
    "kCuptiDriverApi": "CUPTI_CB_DOMAIN_DRIVER_API",
    "kCuptiRuntimeApi": "CUPTI_CB_DOMAIN_RUNTIME_API",
    "kCuptiResource": "CUPTI_CB_DOMAIN_RESOURCE",
    "kCuptiState": "CUPTI_CB_DOMAIN_STATE",
    "kCuptiEnter": "CUPTI_API_ENTER",
    "kCuptiExit": "CUPTI_API_EXIT",
    "kCuptiDeviceGetCount": _DRIVER + "cuDeviceGetCount",
    "kCuptiCtxDestroy": _DRIVER + "cuCtxDestroy",
    "kCuptiCtxDestroyV2": _DRIVER + "cuCtxDestroy_v2",
    "kCuptiProfilerStart": _DRIVER + "cuProfilerStart",
    "kCuptiProfilerStop": _DRIVER + "cuProfilerStop",
    "kCuptiPrimaryCtxRelease": _DRIVER + "cuDevicePrimaryCtxRelease",
    "kCuptiPrimaryCtxReleaseV2": _DRIVER + "cuDevicePrimaryCtxRelease_v2",
    "kCuptiGreenCtxDestroy": _DRIVER + "cuGreenCtxDestroy",
    "kCuptiPrimaryCtxReset": _DRIVER + "cuDevicePrimaryCtxReset",
    "kCuptiPrimaryCtxResetV2": _DRIVER + "cuDevicePrimaryCtxReset_v2",
    "kCuptiRuntimeThreadExit": _RUNTIME + "cudaThreadExit_v3020",
    "kCuptiRuntimeDeviceReset": _RUNTIME + "cudaDeviceReset_v3020",
    "kCuptiRuntimeProfilerStart": _RUNTIME + "cudaProfilerStart_v4000",
    "kCuptiRuntimeProfilerStop": _RUNTIME + "cudaProfilerStop_v4000",
    "kCuptiContextCreated": _RESOURCE + "CONTEXT_CREATED",
    "kCuptiContextDestroyStarting": _RESOURCE + "CONTEXT_DESTROY_STARTING",
    "kCuptiStreamCreated": _RESOURCE + "STREAM_CREATED",
    "kCuptiStreamDestroyStarting": _RESOURCE + "STREAM_DESTROY_STARTING",
    "kCuptiModuleLoaded": _RESOURCE + "MODULE_LOADED",
    "kCuptiModuleUnloadStarting": _RESOURCE + "MODULE_UNLOAD_STARTING",
    "kCuptiGraphNodeCreated": _RESOURCE + "GRAPHNODE_CREATED",
    "kCuptiGraphNodeCloned": _RESOURCE + "GRAPHNODE_CLONED",
    "kCuptiFatalError": "CUPTI_CBID_STATE_FATAL_ERROR",
}
# Ours that are no numbers of NVIDIA's.
OWN = {"kCuptiNone"}
