"""The tables of annotations: NVTX ranges, marks, tasks, payloads, counters, objects."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

_DOMAIN = Column("domain", "dict", "NVTX domain; null for the default domain.", nullable=True)
_LABELS = (
    _DOMAIN,
    Column("category", "dict", "Category name, or its number if it has no name.", nullable=True),
    Column("category_id", "uint32", "Category number as given by the program.", nullable=True),
    Column("message", "dict", "The range's or mark's name.", nullable=True),
    Column("color", "uint32", "0xAARRGGBB as given; alpha 0 means opaque.", nullable=True),
    Column("payload_int", "int64", "Payload if it is an integer (uint64 above 2^63-1 wraps).", nullable=True),
    Column("payload_float", "float64", "Payload if it is a float or double.", nullable=True),
)
_TASK = Column(
    "task", "int64", "Key of `tasks`: the asyncio task, generator, … that it belongs to.", nullable=True
)

NVTX_RANGES = Table(
    "nvtx_ranges",
    "NVTX ranges, push/pop and start/end.",
    (
        Column("id", "int64", "Unique in the report; ids grow with start within a process."),
        PROCESS,
        THREAD,
        Column(
            "end_thread",
            "int64",
            "Thread that ended a start/end range, if it is a different one.",
            nullable=True,
        ),
        time("start", "Start."),
        time("end", "End; for unfinished ranges the last time seen in the process."),
        *_LABELS,
        Column("style", "dict", "`PushPop` or `StartEnd`."),
        Column(
            "depth",
            "int32",
            "Lane on the thread (push/pop), in the task, or in the process (other start/end), from "
            "0; no two ranges of a lane overlap.",
        ),
        Column(
            "parent",
            "int64",
            "Id of the innermost range around it, on its thread or in its task; for a task's first "
            "ranges, the range that was open when the task was created.",
            nullable=True,
        ),
        _TASK,
        Column("unfinished", "bool", "Still open when the process ended."),
        Column("inherited", "bool", "Open in the parent process at `fork`; start is the time of the fork."),
        Column("clipped", "bool", "Crosses an edge of the capture."),
    ),
    sort=("process", "start"),
    happens=True,
)
NVTX_MARKS = Table(
    "nvtx_marks",
    "NVTX marks: instants.",
    (
        Column(
            "id",
            "int64",
            "Unique among the marks of the report; ids grow with start within a process. Null in "
            "reports of old versions.",
            nullable=True,
        ),
        PROCESS,
        THREAD,
        time("start", "Time of the event."),
        *_LABELS,
        _TASK,
    ),
    sort=("process", "start"),
    happens=True,
)
TASKS = Table(
    "tasks",
    "Tasks that take turns on a thread: asyncio and trio tasks, generators with open ranges.",
    (
        Column("task", "int64", "Key."),
        PROCESS,
        Column("thread", "int64", "Key of `threads`: the thread that first ran it."),
        Column("name", "string", "The task's name, or the generator's function.", nullable=True),
        Column("library", "dict", "`asyncio`, `trio`, `generator`, …"),
        Column("parent", "int64", "Range that was open when the task was created.", nullable=True),
        time("start", "When it was first seen."),
    ),
    sort=("task",),
)
NVTX_SCHEMAS = Table(
    "nvtx_schemas",
    "Layouts of extended payloads, and enumerations, as programs registered them.",
    (
        Column("schema", "int64", "Key."),
        PROCESS,
        _DOMAIN,
        Column("id", "uint64", "NVTX's number of it, unique in process and domain."),
        Column("name", "string", "Its name.", nullable=True),
        Column("kind", "dict", "`static`, `dynamic`, `union`, `enum`."),
        Column("size", "int64", "Bytes of the fixed part.", nullable=True, unit="bytes"),
        Column("definition", "string", "JSON: entries with name, type, flags, offset, …"),
    ),
    sort=("schema",),
)
PAYLOADS = Table(
    "payloads",
    "Extended payloads of ranges, marks and counter samples: more than one number. "
    "`Report.payloads(name)` returns typed columns.",
    (
        PROCESS,
        Column("event_type", "dict", "`range`, `mark` or `sample`."),
        Column("event", "int64", "Id of that row in its table."),
        Column("schema", "int64", "Key of `nvtx_schemas`; null for a predefined type.", nullable=True),
        Column("type", "dict", "Name of the schema or of the predefined type."),
        Column("at_end", "bool", "Attached to the end of the range."),
        Column("cut", "bool", "The original was longer."),
        Column(
            "data",
            "binary",
            "The bytes in the layout of the schema; null if `json` has the payload.",
            nullable=True,
        ),
        Column("json", "string", "Payload in JSON format.", nullable=True),
    ),
    sort=("process",),
)
NVTX_COUNTERS = Table(
    "nvtx_counters",
    "Counters that programs registered.",
    (
        Column("counter", "int64", "Key."),
        PROCESS,
        _DOMAIN,
        Column("id", "uint64", "NVTX's number of it, unique in process and domain."),
        Column("name", "string", "Its name; of a structured counter, `name.field`.", nullable=True),
        Column("description", "string", "Its description.", nullable=True),
        Column("type", "dict", "`int64`, `float64`, …"),
        Column("unit", "string", "Unit of the values, e.g. `bytes`.", nullable=True),
        Column("scale", "float64", "Factor from the value to the unit.", nullable=True),
        Column("minimum", "float64", "Minimum expected value.", nullable=True),
        Column("maximum", "float64", "Maximum expected value.", nullable=True),
        Column("value_type", "dict", "Meaning of a value: `absolute`, `delta`, ….", nullable=True),
        Column(
            "interpolation",
            "dict",
            "Value between samples: `point`, `since_last`, `until_next`, `linear`.",
            nullable=True,
        ),
        Column("scope", "string", "Owner, a path such as `/device/0`.", nullable=True),
    ),
    sort=("counter",),
)
NVTX_COUNTER_SAMPLES = Table(
    "nvtx_counter_samples",
    "Values of counters over time.",
    (
        Column("id", "int64", "Unique among the samples of the report."),
        PROCESS,
        THREAD,
        Column("counter", "int64", "Key of `nvtx_counters`."),
        time("start", "Time of the event."),
        Column(
            "value_int",
            "int64",
            "Value if it is an integer (uint64 above 2^63-1 wraps).",
            nullable=True,
        ),
        Column("value_float", "float64", "Value if it is a float.", nullable=True),
        Column(
            "no_value",
            "dict",
            "Reason for a missing value: `zero`, `unchanged`, `unavailable`.",
            nullable=True,
        ),
        _TASK,
    ),
    sort=("process", "start"),
    happens=True,
)
NVTX_OBJECTS = Table(
    "nvtx_objects",
    "Objects that programs named or registered: resources, CUDA devices, streams, contexts and "
    "events, sync objects, heaps.",
    (
        Column("object", "int64", "Key."),
        PROCESS,
        _DOMAIN,
        Column("id", "uint64", "NVTX's handle of it, if it has one.", nullable=True),
        Column("kind", "dict", "`resource`, `cuda_stream`, `cuda_device`, `sync`, `heap`, …"),
        Column("identifier", "uint64", "The address, handle or number that the program gave.", nullable=True),
        Column("name", "string", "Its name.", nullable=True),
        Column("definition", "string", "JSON: its whole definition."),
        time("start", "When it was named."),
        time("end", "When it was destroyed.", nullable=True),
    ),
    sort=("object",),
)
NVTX_OPERATIONS = Table(
    "nvtx_operations",
    "Operations on such objects: acquiring and releasing a lock, registering memory, …",
    (
        PROCESS,
        THREAD,
        time("start", "Time of the event."),
        _DOMAIN,
        Column("action", "dict", "`sync_acquire_start`, `sync_releasing`, `region_register`, …"),
        Column("object", "int64", "Key of `nvtx_objects`, if it is one.", nullable=True),
        Column("target", "uint64", "Handle or address as given."),
        Column("value", "uint64", "Size in bytes or other operand.", nullable=True),
        _TASK,
    ),
    sort=("process", "start"),
    happens=True,
)

NVTX_TABLES = (
    NVTX_RANGES,
    NVTX_MARKS,
    TASKS,
    NVTX_SCHEMAS,
    PAYLOADS,
    NVTX_COUNTERS,
    NVTX_COUNTER_SAMPLES,
    NVTX_OBJECTS,
    NVTX_OPERATIONS,
)
