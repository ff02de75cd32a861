"""What CPUs, the C library, MPI, OpenMP, OpenACC and the system did in one recording, told to a file of any version."""

from __future__ import annotations

from tests.support.reports.nsys_export import Export, call, chain, global_id, nvtx

MAIN, WORKER = global_id(100, 100), global_id(100, 105)
MAIN_C, RUN, READ, KERNEL = (
    ("main", "/usr/bin/app"),
    ("run", "/usr/lib/libapp.so"),
    ("__read", "libc.so.6"),
    ("vfs_read", "[kernel.kallsyms]"),
)
PYTHON = ("train.<locals>.step", "/home/me/train.py:12")


def tell(export: Export) -> Export:
    """Add the whole story: two threads of one process, and a process that was only scheduled."""
    nvtx(export, 59, 90, 500, text="step")
    call(export, "cudaLaunchKernel_v7000", 300, 310, 12, callchainId=3)
    chain(export, "CUDA_CALLCHAINS", 3, MAIN_C, PYTHON)
    _library(export)
    _samples(export)
    _switches(export)
    _parallel(export)
    return export


def _library(export: Export) -> None:
    about = {"eventClass": 27, "globalTid": MAIN, "nestingLevel": 0}
    export.add(
        "OSRT_API",
        start=400,
        end=450,
        nameId=export.string("pthread_mutex_lock"),
        returnValue=0,
        callchainId=2,
        **about,
    )
    export.add(
        "OSRT_API", start=100, end=200, nameId=export.string("read"), returnValue=4096, callchainId=1, **about
    )
    export.add(
        "OSRT_API", start=600, end=601, nameId=export.string("poll"), returnValue=-1, callchainId=77, **about
    )
    chain(export, "OSRT_CALLCHAINS", 1, MAIN_C, RUN, READ)
    chain(export, "OSRT_CALLCHAINS", 2, MAIN_C, RUN)
    file = {"fileAccessId": 9, "threadId": MAIN, "eventType": 1, "context": ""}
    export.add(
        "OSRT_FILE_ACCESS_EVENTS",
        startedAt=110,
        endedAt=190,
        apiCallId=export.string("read"),
        bytesProcessed=4096,
        **file,
    )
    export.add(
        "OSRT_FILE_ACCESS_EVENTS",
        startedAt=195,
        endedAt=196,
        apiCallId=export.string("close"),
        bytesProcessed=0,
        **file,
    )
    export.add(
        "OSRT_FILE_ACCESS_DESCRIPTORS",
        fileAccessId=9,
        processId=global_id(100),
        openedAt=1,
        closedAt=196,
        filePath="/data/x.bin",
    )
    export.add(
        "SYSCALL",
        start=120,
        end=180,
        eventClass=0,
        globalTid=MAIN,
        nameId=export.string("pread64"),
        callchainId=5,
    )
    for depth, (symbol, module) in enumerate((READ, RUN)):
        names = {"symbol": export.string(symbol), "module": export.string(module)}
        export.add("SYSCALL_CALLCHAINS", id=5, stackDepth=depth, unresolved=0, **names)
    export.add("CUDNN_EVENTS", start=1, end=2, eventClass=28, globalTid=MAIN, nameId=export.string("cudnn"))


def _samples(export: Export) -> None:
    chain(export, "SAMPLING_CALLCHAINS", 1, MAIN_C, RUN)
    chain(export, "SAMPLING_CALLCHAINS", 2, MAIN_C, RUN)
    chain(export, "SAMPLING_CALLCHAINS", 3, MAIN_C, RUN, READ, KERNEL, kernel=1)
    for number, start in ((2, 150), (1, 100), (3, 200)):
        export.add(
            "COMPOSITE_EVENTS", id=number, start=start, cpu=1, threadState=1, globalTid=MAIN, cpuCycles=1
        )
    export.add("COMPOSITE_EVENTS", id=8, start=250, cpu=0, threadState=1, globalTid=WORKER, cpuCycles=1)
    export.add("COMPOSITE_EVENTS", id=9, start=260, cpu=0, threadState=7, globalTid=WORKER, cpuCycles=0)


def _switches(export: Export) -> None:
    for start, cpu, goes, state, block in (
        (100, 1, 1, None, None),
        (200, 1, 0, 7, 3),
        (400, 0, 1, None, None),
        (500, 0, 0, 6, None),
    ):
        export.add(
            "SCHED_EVENTS",
            start=start,
            cpu=cpu,
            isSchedIn=goes,
            globalTid=MAIN,
            threadState=state,
            threadBlock=block,
        )
    export.add("SCHED_EVENTS", start=50, cpu=0, isSchedIn=1, globalTid=global_id(7, 7))


def _parallel(export: Export) -> None:
    export.add("MPI_RANKS", globalTid=MAIN, rank=3)
    where = {"globalTid": MAIN, "commHandle": 1140850688, "commUid": 5}
    message = {"tag": 8, "remoteRank": 1, "size": 1024}
    export.add("MPI_P2P_EVENTS", start=520, end=530, textId=export.string("MPI_Send"), **message, **where)
    export.add(
        "MPI_COLLECTIVES_EVENTS",
        start=500,
        end=515,
        textId=export.string("MPI_Bcast"),
        rootRank=0,
        size=64,
        recvSize=64,
        **where,
    )
    export.add("MPI_START_WAIT_EVENTS", start=540, end=None, globalTid=MAIN, textId=export.string("MPI_Wait"))
    export.add("MPI_OTHER_EVENTS", start=10, end=20, globalTid=MAIN, textId=export.string("MPI_Init"))
    about = {"eventClass": 78, "globalTid": WORKER, "correlationId": 1}
    export.add(
        "OPENMP_EVENT_KIND_PARALLEL",
        start=300,
        end=400,
        nameId=export.string("omp parallel"),
        eventKind=1,
        **about,
    )
    export.add(
        "OPENMP_EVENT_KIND_SYNC_REGION_WAIT",
        start=290,
        end=350,
        nameId=export.string("omp wait"),
        eventKind=2,
        kind=1,
        **about,
    )
    acc = {
        "globalTid": MAIN,
        "eventKind": 1,
        "DeviceType": 1,
        "cuDeviceId": 0,
        "cuContextId": 1,
        "cuStreamId": 7,
    }
    source = {"lineNo": 12, "srcFile": export.string("/home/me/solve.c")}
    export.add(
        "CUPTI_ACTIVITY_KIND_OPENACC_DATA",
        start=700,
        end=710,
        nameId=export.string("Enter Data"),
        **acc,
        **source,
    )
    export.add(
        "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH",
        start=720,
        end=730,
        nameId=export.string("Launch"),
        lineNo=0,
        **acc,
    )
