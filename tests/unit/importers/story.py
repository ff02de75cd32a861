"""One recording with something in every table that a report has a place for, told to a file of any version."""

from __future__ import annotations

from tests.support.reports.nsys_export import (
    MACHINE,
    SECRET,
    Export,
    call,
    global_id,
    kernel,
    nvtx,
    settings,
    work,
)

PUSH_POP, START_END, MARK, CATEGORY, THREAD_NAME, DOMAIN = 59, 60, 34, 33, 39, 75


def tell(export: Export) -> Export:
    """Add the whole story: two processes; what is out of order in a real file is so here."""
    _run(export)
    _annotations(export)
    _calls_and_work(export)
    _waits(export)
    _memory(export)
    _rest(export)
    return export


def _run(export: Export) -> None:
    for pid, name in ((100, "python3"), (101, "python3"), (1, "systemd")):
        export.add("PROCESSES", globalPid=global_id(pid), pid=pid, name=name)
    export.add("ThreadNames", nameId=export.string("worker"), priority=20, globalTid=global_id(100, 105))
    export.add("ThreadNames", nameId=export.string("nobody"), priority=20, globalTid=global_id(1, 1))
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        export.add(table, name="EXPORT_PRODUCT_VERSION", value="2026.1.1")
    told = {
        "PROCESS_0:COMMAND": "/usr/bin/python3",
        "PROCESS_0:ARGUMENT_0": "train.py",
        "PROCESS_0:ARGUMENT_1": "two words",
    }
    settings(export, {**told, "PROCESS_0:ENVIRONMENT_VARIABLE": SECRET, "PROFILING_SESSION_UUID": "uuid"})
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    for name, value in {
        "Hostname": "gpu-box",
        "OsDescription": "Ubuntu",
        "CpuCores": "18",
        "DeviceEnvironment": SECRET,
    }.items():
        export.add(
            "TARGET_INFO_SYSTEM_ENV", globalVid=MACHINE, name=name, nameEnum=0, devStateName="x", value=value
        )
    export.string(SECRET)
    export.add(
        "ProcessStreams",
        globalPid=global_id(100),
        filenameId=export.string("out"),
        contentId=export.string(SECRET + " output"),
    )
    export.add(
        "ANALYSIS_FILE",
        id=1,
        filename="f",
        contentId=export.string(SECRET + " file"),
        content=SECRET,
        globalPid=global_id(100),
    )
    launched = "Process was launched by the profiler, see the log"
    export.add(
        "DIAGNOSTIC_EVENT",
        timestamp=5,
        timestampType=1,
        source=2,
        severity=1,
        text=launched,
        globalPid=global_id(100),
    )
    export.add(
        "DIAGNOSTIC_EVENT",
        timestamp=6,
        timestampType=1,
        source=1,
        severity=2,
        text="Careful.",
        globalPid=-(1 << 57),
    )


def _annotations(export: Export) -> None:
    nvtx(export, DOMAIN, 1, text="io", domainId=3)
    nvtx(export, CATEGORY, 2, text="disk", category=9, domainId=3)
    nvtx(export, THREAD_NAME, 3, text="the main one")
    nvtx(export, PUSH_POP, 100, 900, text="step", color=0xFF00FF00)
    nvtx(
        export,
        PUSH_POP,
        200,
        400,
        textId=export.string("load"),
        domainId=3,
        category=9,
        uint64Value=2**63 - 1,
    )
    nvtx(export, PUSH_POP, 500, None, text="open", doubleValue=2.5)
    nvtx(export, START_END, 150, 350, text="a", endGlobalTid=global_id(100, 105))
    nvtx(export, START_END, 160, 360, text="b")
    nvtx(export, MARK, 170, text="here", domainId=3, int32Value=-4, jsonText='{"x": 1}')
    export.add(
        "NVTX_PAYLOAD_SCHEMAS",
        domainId=3,
        schemaId=1 << 24,
        name="point",
        type=1,
        numEntries=1,
        payloadSize=8,
    )
    export.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=3, schemaId=1 << 24, idx=0, type=6, name="x", offset=0)
    export.add(
        "NVTX_EVENTS_PAYLOAD_SCHEMAS",
        eventId=len(export.rows["NVTX_EVENTS"]) - 1,
        globalPid=global_id(100),
        domainId=3,
        payloadSchemaID=1 << 24,
    )


def _calls_and_work(export: Export) -> None:
    kernel(export, "gemm", 320, 380, 12, clusterX=2, clusterY=1, clusterZ=1, graphNodeId=5)
    call(export, "cudaMemcpyAsync_v3020", 420, 430, 13)
    call(export, "cudaLaunchKernel_v7000", 300, 310, 12)
    call(export, "cuMemAlloc_v2", 50, 60, 11, eventClass=1, returnValue=2)
    call(export, "cudaLaunchKernel_v7000", 310, 330, 12, (101, 101))
    kernel(export, "relu", 400, 450, 12, pid=101)
    kernel(export, "lost", 10, 20, 99)
    work("MEMCPY", export, 440, 460, 13, bytes=4096, copyKind=1, srcKind=0, dstKind=2, copyCount=3)
    work(
        "MEMCPY",
        export,
        470,
        480,
        0,
        bytes=65536,
        copyKind=11,
        srcKind=4,
        dstKind=4,
        migrationCause=2,
        virtualAddress=-4096,
    )
    work(
        "MEMCPY",
        export,
        480,
        490,
        0,
        bytes=32,
        copyKind=10,
        srcKind=2,
        dstKind=2,
        srcDeviceId=0,
        dstDeviceId=1,
    )
    work("MEMSET", export, 465, 468, 13, value=255, bytes=128, memKind=2)
    work("GRAPH_TRACE", export, 600, 700, 14, graphId=4, graphExecId=5)
    call(export, "cudaGraphLaunch_v10000", 590, 595, 14)


def _waits(export: Export) -> None:
    call(export, "cudaStreamSynchronize_v3020", 700, 800, 20)
    call(export, "cudaEventRecord_v3020", 810, 812, 21)
    work("SYNCHRONIZATION", export, 705, 795, 20, syncType=3, eventId=0xFFFFFFFF, eventSyncId=0)
    work("SYNCHRONIZATION", export, 820, 830, 0, syncType=1, eventId=3, eventSyncId=1)
    call(export, "cudaEventRecord_v3020", 840, 842, 22)
    event = {
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "globalPid": global_id(100),
        "eventId": 3,
        "eventSyncId": 1,
    }
    export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", timestamp=815, correlationId=21, **event)
    export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", timestamp=0, correlationId=22, **event)


def _memory(export: Export) -> None:
    place = {"globalPid": global_id(100), "deviceId": 0, "contextId": 1}
    for start, operation, address, size in (
        (60, 0, 0x1000, 512),
        (61, 0, 0x2000, 256),
        (62, 1, 0x1000, 0),
        (63, 1, 0x9000, 64),
    ):
        row = {
            "address": address,
            "bytes": size,
            "memKind": 2,
            "memoryOperationType": operation,
            "correlationId": 11,
            "pc": 0,
        }
        export.add("CUDA_GPU_MEMORY_USAGE_EVENTS", start=start, **place, **row)
    pool = {
        "globalPid": global_id(100),
        "deviceId": 0,
        "address": 0x5000,
        "operationType": 1,
        "poolType": 1,
        "localMemoryPoolSize": 99,
    }
    export.add("CUDA_GPU_MEMORY_POOL_EVENTS", start=59, **pool)
    export.add(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        start=475,
        globalPid=global_id(100),
        address=0x7000,
        CpuInstruction=0,
        module=0,
    )
    fault = {
        "globalPid": global_id(100),
        "deviceId": 0,
        "address": 0x8000,
        "numberOfPageFaults": 4,
        "faultAccessType": 2,
    }
    export.add("CUDA_UM_GPU_PAGE_FAULT_EVENTS", start=476, end=478, **fault)


def _rest(export: Export) -> None:
    about = {"globalTid": global_id(100, 100), "nameId": export.string("why"), "correlationId": 11}
    export.add("CUPTI_ACTIVITY_KIND_OVERHEAD", start=70, end=90, eventClass=103, overheadType=6, **about)
    export.add(
        "CUPTI_ACTIVITY_KIND_JIT",
        start=91,
        end=95,
        eventClass=102,
        overheadType=2,
        jitEntryType=1,
        jitOperationType=3,
        **about,
    )
    export.add(
        "PROFILER_OVERHEAD",
        start=30,
        end=40,
        globalTid=global_id(100, 105),
        nameId=export.string("nsys"),
        returnValue=0,
        overheadType=3,
    )
    for time, metric, value in ((300, 1, 97), (200, 1, 96), (200, 2, 1410)):
        export.add(
            "GPU_METRICS", rawTimestamp=time, timestamp=time, typeId=0x100, metricId=metric, value=value
        )
    for metric, name in ((1, "SMs Active [Throughput %]"), (2, "GPC Clock Frequency [MHz]")):
        export.add(
            "TARGET_INFO_GPU_METRICS",
            typeId=0x100,
            sourceId=1,
            typeName="GPU",
            metricId=metric,
            metricName=name,
        )
    gpu = {
        "name": "NVIDIA H100",
        "busLocation": "0000:0F:00.0",
        "smCount": 132,
        "uuid": "abc",
        "computeMajor": 9,
        "computeMinor": 0,
    }
    export.add(
        "TARGET_INFO_GPU",
        vmId=MACHINE,
        id=0,
        **gpu,
        totalMemory=80 << 30,
        clockRate=1_980_000_000,
        cuDevice=0,
    )
    early = {
        "deviceId": 0,
        "name": "NVIDIA H100",
        "numMultiprocessors": 132,
        "computeCapabilityMajor": 9,
        "computeCapabilityMinor": 0,
    }
    export.add("TARGET_INFO_CUDA_GPU", **early)
    for pid in (100, 101):
        export.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=pid)
    place = {"hwId": 0, "vmId": 1, "processId": 100}
    for table in ("TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_CONTEXT_INFO"):
        export.add(table, nullStreamId=7, deviceId=0, contextId=1, **place)
    export.add("TARGET_INFO_CUDA_STREAM", streamId=7, contextId=1, priority=0, flag=3, **place)
    export.add("TARGET_INFO_CUDA_STREAM", streamId=8, contextId=1, priority=0xFFFFFFFB, flag=2, **place)
    export.add("TARGET_INFO_NVTX_CUDA_STREAM", name="compute", deviceId=0, contextId=1, streamId=8, **place)
    export.add("TARGET_INFO_NVTX_CUDA_CONTEXT", name="ctx", deviceId=0, contextId=1, **place)
    export.add("TARGET_INFO_NVTX_CUDA_DEVICE", name="dev", hwId=0, vmId=1, deviceId=0)
    export.add("MPI_RANKS", globalTid=global_id(101, 101), rank=3)
    export.add(
        "OSRT_API",
        start=1,
        end=2,
        eventClass=27,
        globalTid=global_id(100, 100),
        nameId=export.string("read"),
        returnValue=0,
    )
