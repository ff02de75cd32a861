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
    "CUPTI's number of the API call, unique in its process; null where there was none.",
    nullable=True,
)
_API = Column(
    "api", "int64", "Id of the API call in `cuda_api`; null where that was not recorded.", nullable=True
)
_GRAPH = (
    Column(
        "graph", "int64", "CUPTI's number of the executable graph that it was launched with.", nullable=True
    ),
    Column("graph_node", "int64", "CUPTI's number of the node in that graph.", nullable=True),
    Column(
        "captured",
        "int64",
        "Id in `cuda_api` of the call that captured the node; null where that was not recorded.",
        nullable=True,
    ),
    Column(
        "captured_in",
        "dict",
        "Ranges and operators of the thread that were open then, the outermost first, one a line.",
        nullable=True,
    ),
)
_WHAT_RAN = (
    _ID,
    PROCESS,
    _DEVICE,
    _CONTEXT,
    _STREAM,
    time("start", "When it began on the GPU."),
    time("end", "When it ended."),
)

CUDA_API = Table(
    "cuda_api",
    "Calls of the CUDA runtime and driver API.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "Begin of the call."),
        time("end", "Return of the call: the GPU may run what it launched much later."),
        Column("api", "dict", "`runtime` or `driver`."),
        Column(
            "name",
            "dict",
            "Function, without the version that the runtime appends and without leading underscores, e.g. `cudaLaunchKernel`.",
        ),
        Column("result", "int32", "What it returned: 0 = success."),
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
            "With --cudabacktrace, of long calls: innermost frame of their stack, key of `frames`.",
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
        Column("mangled", "dict", "Name as in the binary, where it is known.", nullable=True),
        _API,
        _CORRELATION,
        *(Column(f"grid_{axis}", "int32", f"Blocks in {axis}.") for axis in "xyz"),
        *(Column(f"block_{axis}", "int32", f"Threads of a block in {axis}.") for axis in "xyz"),
        *(
            Column(f"cluster_{axis}", "int32", f"Blocks of a cluster in {axis}.", nullable=True)
            for axis in "xyz"
        ),
        Column("registers", "int32", "Registers of each thread."),
        Column(
            "static_shared", "int64", "Shared memory of each block that the kernel declares.", unit="bytes"
        ),
        Column(
            "dynamic_shared", "int64", "Shared memory of each block that the launch asks for.", unit="bytes"
        ),
        Column(
            "shared_executed",
            "int64",
            "Shared memory that the hardware set aside for each block.",
            nullable=True,
            unit="bytes",
        ),
        Column("local_per_thread", "int64", "Local memory of each thread.", nullable=True, unit="bytes"),
        Column("local_total", "int64", "Local memory in all.", nullable=True, unit="bytes"),
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
    "Copies of memory that a GPU took part in.",
    (
        *_WHAT_RAN,
        Column("bytes", "int64", "How much.", unit="bytes"),
        Column(
            "kind",
            "dict",
            "`Host-to-Device`, `Device-to-Host`, `Device-to-Device`, `Peer-to-Peer`, `Host-to-Host`, …",
        ),
        Column(
            "source_kind",
            "dict",
            "Memory it came from: `Pageable`, `Pinned`, `Device`, `Array`, `Managed`, …",
            nullable=True,
        ),
        Column("destination_kind", "dict", "Memory it went to.", nullable=True),
        Column(
            "source_device",
            "int32",
            "Device it came from; null where the copy is not between devices.",
            nullable=True,
        ),
        Column("destination_device", "int32", "Device it went to.", nullable=True),
        Column("asynchronous", "bool", "False: the call waited for it.", nullable=True),
        Column("copies", "int64", "How many copies were taken together.", nullable=True),
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
    "Memory that was set by a GPU.",
    (
        *_WHAT_RAN,
        Column("bytes", "int64", "How much.", unit="bytes"),
        Column("value", "int64", "What each element was set to."),
        Column("memory_kind", "dict", "Which memory: `Device`, `Pinned`, `Managed`, …", nullable=True),
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
    "Launches of CUDA graphs as a whole; with --cuda-graph-trace=node their kernels and copies are there instead.",
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
    "Waits for the GPU: the host's, and those of a stream for an event.",
    (
        _ID,
        PROCESS,
        time("start", "Begin of the wait."),
        time("end", "End of the wait."),
        Column("kind", "dict", "`Event`, `Stream wait event`, `Stream` or `Context` (the whole device)."),
        Column("context", "int64", "CUDA context.", nullable=True),
        Column("stream", "int64", "CUDA stream, where it is about one.", nullable=True),
        Column("event", "int64", "CUPTI's number of the CUDA event, where it is about one.", nullable=True),
        Column(
            "event_sync",
            "int64",
            "Which of the event's records it waits for: `event_sync` in `cuda_events`.",
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
            "When the GPU came to it; where that is not known, the begin of the API call.",
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
    "Memory that the program got from CUDA and gave back. Allocators of frameworks keep what they get: this is not what tensors take.",
    (
        _ID,
        PROCESS,
        Column("device", "int32", "CUDA's number of the device.", nullable=True),
        Column("context", "int64", "CUDA context.", nullable=True),
        Column("stream", "int64", "CUDA stream, of stream-ordered operations.", nullable=True),
        time("start", "When."),
        Column("operation", "dict", "`allocate`, `free`, `pool create`, `pool destroy` or `pool trim`."),
        Column("kind", "dict", "Memory: `Device`, `Pinned`, `Managed`, …", nullable=True),
        Column("address", "uint64", "Address."),
        Column("bytes", "int64", "How much; of a free, what the allocation had.", unit="bytes"),
        Column(
            "total",
            "int64",
            "Memory of this kind that the process has on the device after it.",
            nullable=True,
            unit="bytes",
        ),
        Column("pool", "uint64", "Address of the pool it came from.", nullable=True),
        Column("pool_size", "int64", "What the pool has.", nullable=True, unit="bytes"),
        Column("pool_used", "int64", "What of the pool is given out.", nullable=True, unit="bytes"),
        Column("name", "dict", "Who allocated, where CUPTI says so.", nullable=True),
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
        time("start", "Begin."),
        time("end", "End."),
        Column(
            "kind",
            "dict",
            "`HtoD`, `DtoH`, `DtoD` (migrations), `CPU page fault`, `GPU page fault`, `thrashing`, `throttling`, `remote map`.",
        ),
        Column(
            "device", "int32", "CUDA's number of the device; null where no device is meant.", nullable=True
        ),
        Column("source", "int32", "Device that pages came from; null: the host.", nullable=True),
        Column("destination", "int32", "Device that pages went to; null: the host.", nullable=True),
        Column("address", "uint64", "First address."),
        Column("bytes", "int64", "What moved; null where nothing does.", nullable=True, unit="bytes"),
        Column("faults", "int64", "How many faults it stands for.", nullable=True),
        Column(
            "cause",
            "dict",
            "Why pages moved: `user`, `coherence`, `prefetch`, `eviction`, `access counters`; "
            "how a fault accessed: `read`, `write`, `atomic`, `prefetch`.",
            nullable=True,
        ),
        Column(
            "instruction",
            "dict",
            "Of a CPU page fault: the function, or address, that touched the page.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
OVERHEAD = Table(
    "overhead",
    "Time that the driver or the recording itself took: compiling, loading modules, flushing buffers.",
    (
        _ID,
        PROCESS,
        Column("thread", "int64", "Key of `threads`, where it is a thread of the program.", nullable=True),
        time("start", "Begin."),
        time("end", "End."),
        Column(
            "kind",
            "dict",
            "`Driver compiler`, `Buffer flush`, `Instrumentation`, `Resource`, `Module loading`, `Lazy function loading`, `JIT …`, …",
        ),
        Column("name", "dict", "What it was about, where known.", nullable=True),
        _CORRELATION,
    ),
    sort=("process", "start"),
    happens=True,
)
EXTERNAL_IDS = Table(
    "external_ids",
    "Which operation of a framework an API call belongs to, where the framework told CUPTI.",
    (
        PROCESS,
        Column("kind", "dict", "Whose number it is: `custom0`, `custom1`, `custom2`, `OpenACC`, `unknown`."),
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
        Column("gpu", "int32", "Number of the GPU on its host, as nvidia-smi has it."),
        Column("uuid", "dict", "`GPU-…`: the same in `devices`.", nullable=True),
        time("start", "When it was read; the value holds since the reading before."),
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
        Column("compute_major", "int32", "Compute capability.", nullable=True),
        Column("compute_minor", "int32", "Compute capability, behind the point.", nullable=True),
        Column("multiprocessors", "int32", "Streaming multiprocessors.", nullable=True),
        Column("memory", "int64", "Global memory.", nullable=True, unit="bytes"),
        Column("memory_bandwidth", "int64", "Peak, bytes/s.", nullable=True),
        Column("clock", "int64", "Core clock at its highest, Hz.", nullable=True),
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
        Column("priority", "int32", "Lower numbers first.", nullable=True),
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
