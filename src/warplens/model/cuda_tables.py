"""The tables of CUDA: API calls, GPU work, devices, contexts and streams.

Numbers of kinds are names here, as nsys prints them.
"""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

_ID = Column("id", "int64", "Unique in its table; ids grow with start within a process.")
_DEVICE = Column(
    "device", "int32", "CUDA's number of the device in this process: with `process` the key of `devices`."
)
_CONTEXT = Column("context", "int64", "CUDA context: with `process` the key of `contexts`.")
_STREAM = Column("stream", "int64", "CUDA stream: with `process` the key of `streams`.")
_CORRELATION = Column(
    "correlation",
    "int64",
    "CUPTI's number of the API call, unique in its process; null if there was none.",
    nullable=True,
)
_API = Column("api", "int64", "Id of the API call in `cuda_api`; null if it was not recorded.", nullable=True)
_GRAPH = (
    Column("graph", "int64", "CUPTI's number of the executable graph that launched it.", nullable=True),
    Column("graph_node", "int64", "CUPTI's number of the node in that graph.", nullable=True),
)
_WHAT_RAN = (
    _ID,
    PROCESS,
    _DEVICE,
    _CONTEXT,
    _STREAM,
    time("start", "Start on the GPU."),
    time("end", "End on the GPU."),
)

CUDA_API = Table(
    "cuda_api",
    "Calls of the CUDA runtime and driver API.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "Start of the call."),
        time("end", "Return of the call; the GPU may run its work much later."),
        Column("api", "dict", "`runtime` or `driver`."),
        Column(
            "name",
            "dict",
            "Function, without the version that the runtime appends and without leading "
            "underscores, e.g. `cudaLaunchKernel`.",
        ),
        Column("result", "int32", "Return value; 0 = success."),
        Column("correlation", "int64", "CUPTI's number of the call, unique in its process."),
        Column(
            "range",
            "int64",
            "Id of the innermost NVTX push/pop range of the thread that encloses its begin.",
            nullable=True,
        ),
        Column(
            "stack",
            "int64",
            "Long calls with --cudabacktrace: innermost frame of the stack, key of `frames`.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
KERNELS = Table(
    "kernels",
    "Kernels that ran on a GPU.",
    (
        *_WHAT_RAN,
        Column(
            "name", "dict", "Short name: the function, without namespaces, template arguments and parameters."
        ),
        Column("demangled", "dict", "Full name."),
        Column("mangled", "dict", "Name in the binary, if known.", nullable=True),
        _API,
        _CORRELATION,
        *(Column(f"grid_{axis}", "int32", f"Blocks in {axis}.") for axis in "xyz"),
        *(Column(f"block_{axis}", "int32", f"Threads of a block in {axis}.") for axis in "xyz"),
        *(
            Column(f"cluster_{axis}", "int32", f"Blocks of a cluster in {axis}.", nullable=True)
            for axis in "xyz"
        ),
        Column("registers", "int32", "Registers per thread."),
        Column("static_shared", "int64", "Shared memory per block, declared by the kernel.", unit="bytes"),
        Column("dynamic_shared", "int64", "Shared memory per block, requested by the launch.", unit="bytes"),
        Column(
            "shared_executed",
            "int64",
            "Shared memory per block, reserved by the hardware.",
            nullable=True,
            unit="bytes",
        ),
        Column("local_per_thread", "int64", "Local memory per thread.", nullable=True, unit="bytes"),
        Column("local_total", "int64", "Local memory in total.", nullable=True, unit="bytes"),
        Column(
            "launch_type", "dict", "`regular`, `cooperative`, `cooperative multi-device`, …", nullable=True
        ),
        *_GRAPH,
    ),
    sort=("process", "start"),
    happens=True,
    launched=True,
)
MEMCPYS = Table(
    "memcpys",
    "Memory copies with a GPU as source, destination or engine.",
    (
        *_WHAT_RAN,
        Column("bytes", "int64", "Size.", unit="bytes"),
        Column(
            "kind",
            "dict",
            "`Host-to-Device`, `Device-to-Host`, `Device-to-Device`, `Peer-to-Peer`, `Host-to-Host`, …",
        ),
        Column(
            "source_kind",
            "dict",
            "Source memory: `Pageable`, `Pinned`, `Device`, `Array`, `Managed`, …",
            nullable=True,
        ),
        Column("destination_kind", "dict", "Destination memory.", nullable=True),
        Column(
            "source_device",
            "int32",
            "Source device; null if the copy is not between devices.",
            nullable=True,
        ),
        Column("destination_device", "int32", "Destination device.", nullable=True),
        Column("asynchronous", "bool", "False: the call waited for it.", nullable=True),
        Column("copies", "int64", "Number of copies in this row.", nullable=True),
        _API,
        _CORRELATION,
        *_GRAPH,
    ),
    sort=("process", "start"),
    happens=True,
    launched=True,
)
MEMSETS = Table(
    "memsets",
    "Memsets by a GPU.",
    (
        *_WHAT_RAN,
        Column("bytes", "int64", "Size.", unit="bytes"),
        Column("value", "int64", "Value of each element."),
        Column("memory_kind", "dict", "Kind of memory: `Device`, `Pinned`, `Managed`, …", nullable=True),
        _API,
        _CORRELATION,
        *_GRAPH,
    ),
    sort=("process", "start"),
    happens=True,
    launched=True,
)
GRAPHS = Table(
    "graphs",
    "Launches of CUDA graphs as a whole; with --cuda-graph-trace=node, the report has their kernels "
    "and copies instead.",
    (
        *_WHAT_RAN,
        Column("graph", "int64", "CUPTI's number of the graph.", nullable=True),
        Column("graph_exec", "int64", "CUPTI's number of the executable graph.", nullable=True),
        _API,
        _CORRELATION,
    ),
    sort=("process", "start"),
    happens=True,
    launched=True,
)
SYNCS = Table(
    "syncs",
    "Waits of the host for the GPU, and of a stream for an event.",
    (
        _ID,
        PROCESS,
        time("start", "Start of the wait."),
        time("end", "End of the wait."),
        Column("kind", "dict", "`Event`, `Stream wait event`, `Stream` or `Context` (the whole device)."),
        Column("context", "int64", "CUDA context.", nullable=True),
        Column("stream", "int64", "CUDA stream, if the wait is for one.", nullable=True),
        Column("event", "int64", "CUPTI's number of the CUDA event, if the wait is for one.", nullable=True),
        Column(
            "event_sync",
            "int64",
            "The awaited record of the event: `event_sync` in `cuda_events`.",
            nullable=True,
        ),
        _API,
        _CORRELATION,
    ),
    sort=("process", "start"),
    happens=True,
)
CUDA_EVENTS = Table(
    "cuda_events",
    "CUDA events that were recorded into streams (cudaEventRecord).",
    (
        _ID,
        PROCESS,
        Column("device", "int32", "CUDA's number of the device.", nullable=True),
        _CONTEXT,
        _STREAM,
        time(
            "start",
            "Time at which the GPU reached it; if unknown, the start of the API call.",
            nullable=True,
        ),
        Column("event", "int64", "CUPTI's number of the CUDA event."),
        Column("event_sync", "int64", "CUPTI's number of this record of the event.", nullable=True),
        _API,
        _CORRELATION,
    ),
    sort=("process", "start"),
    happens=True,
    launched=True,
)
GPU_MEMORY = Table(
    "gpu_memory",
    "Memory that the program allocated from CUDA and freed. Frameworks keep memory for reuse: this "
    "is not the memory of tensors.",
    (
        _ID,
        PROCESS,
        Column("device", "int32", "CUDA's number of the device.", nullable=True),
        Column("context", "int64", "CUDA context.", nullable=True),
        Column("stream", "int64", "CUDA stream; only for stream-ordered operations.", nullable=True),
        time("start", "Time of the event."),
        Column("operation", "dict", "`allocate`, `free`, `pool create`, `pool destroy` or `pool trim`."),
        Column("kind", "dict", "Memory: `Device`, `Pinned`, `Managed`, …", nullable=True),
        Column("address", "uint64", "Address."),
        Column("bytes", "int64", "Size; for a free, the size of the allocation.", unit="bytes"),
        Column(
            "total",
            "int64",
            "Memory of this kind that the process has on the device afterwards.",
            nullable=True,
            unit="bytes",
        ),
        Column("pool", "uint64", "Address of its pool.", nullable=True),
        Column("pool_size", "int64", "Size of the pool.", nullable=True, unit="bytes"),
        Column("pool_used", "int64", "Allocated part of the pool.", nullable=True, unit="bytes"),
        Column("name", "dict", "Allocating component, if CUPTI reports it.", nullable=True),
        _API,
        _CORRELATION,
    ),
    sort=("process", "start"),
    happens=True,
)
UM_EVENTS = Table(
    "um_events",
    "Unified memory: migrations and page faults.",
    (
        _ID,
        PROCESS,
        time("start", "Start."),
        time("end", "End."),
        Column(
            "kind",
            "dict",
            "`HtoD`, `DtoH`, `DtoD` (migrations), `CPU page fault`, `GPU page fault`, `thrashing`, "
            "`throttling`, `remote map`.",
        ),
        Column(
            "device", "int32", "CUDA's number of the device; null if it concerns no device.", nullable=True
        ),
        Column("source", "int32", "Source device of the pages; null: the host.", nullable=True),
        Column("destination", "int32", "Destination device of the pages; null: the host.", nullable=True),
        Column("address", "uint64", "First address."),
        Column("bytes", "int64", "Bytes that moved; null if none.", nullable=True, unit="bytes"),
        Column("faults", "int64", "Number of faults in this row.", nullable=True),
        Column(
            "cause",
            "dict",
            "Cause of a migration: `user`, `coherence`, `prefetch`, `eviction`, `access counters`; "
            "access of a fault: `read`, `write`, `atomic`, `prefetch`.",
            nullable=True,
        ),
        Column(
            "instruction",
            "dict",
            "CPU page faults only: the function, or address, that touched the page.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
OVERHEAD = Table(
    "overhead",
    "Time taken by the driver or by the recording itself: compiling, loading modules, flushing buffers.",
    (
        _ID,
        PROCESS,
        Column("thread", "int64", "Key of `threads`, if it is a thread of the program.", nullable=True),
        time("start", "Start."),
        time("end", "End."),
        Column(
            "kind",
            "dict",
            "`Driver compiler`, `Buffer flush`, `Instrumentation`, `Resource`, `Module loading`, "
            "`Lazy function loading`, `JIT …`, …",
        ),
        Column("name", "dict", "Subject, if known.", nullable=True),
        _CORRELATION,
    ),
    sort=("process", "start"),
    happens=True,
)
EXTERNAL_IDS = Table(
    "external_ids",
    "Framework operations of API calls, if the framework reported them to CUPTI.",
    (
        PROCESS,
        Column(
            "kind", "dict", "Source of the number: `custom0`, `custom1`, `custom2`, `OpenACC`, `unknown`."
        ),
        Column("external", "uint64", "The framework's number."),
        _API,
        _CORRELATION,
    ),
    sort=("process", "correlation"),
)
GPU_METRICS = Table(
    "gpu_metrics",
    "Values of the GPUs' counters, sampled by the launcher: whole devices, with the work of every process.",
    (
        Column("host", "string", "Host name."),
        Column("gpu", "int32", "Number of the GPU on its host, as in nvidia-smi."),
        Column("uuid", "dict", "`GPU-…`: key that `devices` also has.", nullable=True),
        time("start", "Time of the reading; the value holds since the previous reading."),
        Column("metric", "dict", "Name, e.g. `GPU Utilization`, `SM Active`, `Memory Used`, `Power`."),
        Column("unit", "dict", "`%`, `bytes`, `bytes/s`, `W`, `MHz`, `C` or empty."),
        Column("value", "float64", "Value."),
    ),
    sort=("host", "start"),
    happens=True,
)
DEVICES = Table(
    "devices",
    "The GPUs that each process could use.",
    (
        PROCESS,
        Column("device", "int32", "CUDA's number of it in this process."),
        Column("name", "string", "Product name."),
        Column("uuid", "string", "`GPU-…`: the same device in all processes.", nullable=True),
        Column("bus", "string", "PCI address, `0000:0f:00.0`.", nullable=True),
        Column("compute_major", "int32", "Compute capability, major number.", nullable=True),
        Column("compute_minor", "int32", "Compute capability, minor number.", nullable=True),
        Column("multiprocessors", "int32", "Streaming multiprocessors.", nullable=True),
        Column("memory", "int64", "Global memory.", nullable=True, unit="bytes"),
        Column("memory_bandwidth", "int64", "Peak, bytes/s.", nullable=True),
        Column("clock", "int64", "Maximum core clock, Hz.", nullable=True),
        Column("l2_size", "int64", "L2 cache.", nullable=True, unit="bytes"),
    ),
    sort=("process", "device"),
)
CONTEXTS = Table(
    "contexts",
    "CUDA contexts.",
    (
        PROCESS,
        Column("context", "int64", "Key, with `process`."),
        Column("device", "int32", "CUDA's number of the device."),
        Column("null_stream", "int64", "Number of its null stream.", nullable=True),
        Column("name", "string", "Name given through NVTX.", nullable=True),
    ),
    sort=("process", "context"),
)
STREAMS = Table(
    "streams",
    "CUDA streams.",
    (
        PROCESS,
        Column("context", "int64", "CUDA context."),
        Column("stream", "int64", "Key, with `process`."),
        Column("priority", "int32", "Priority; lower numbers run first.", nullable=True),
        Column("kind", "dict", "`default`, `non-blocking` or `null`.", nullable=True),
        Column("name", "string", "Name given through NVTX.", nullable=True),
    ),
    sort=("process", "stream"),
)

CUDA_TABLES: tuple[Table, ...] = (
    *(
        CUDA_API,
        KERNELS,
        MEMCPYS,
        MEMSETS,
        GRAPHS,
        SYNCS,
        CUDA_EVENTS,
        GPU_MEMORY,
        UM_EVENTS,
        OVERHEAD,
        EXTERNAL_IDS,
        GPU_METRICS,
    ),
    *(DEVICES, CONTEXTS, STREAMS),
)
