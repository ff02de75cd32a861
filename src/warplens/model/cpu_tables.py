"""Tables of the CPU side: samples, stacks, thread states, C library calls, and Python's activity."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

_ID = Column("id", "int64", "Unique in its table; ids grow with start within a process.")
_START, _END = time("start", "Start."), time("end", "End.")
_STACK = Column(
    "stack", "int64", "Innermost frame: key of `frames`; null: no stack was taken.", nullable=True
)
_RANGE = Column(
    "range",
    "int64",
    "Id of the innermost NVTX push/pop range of the thread that encloses the begin.",
    nullable=True,
)

FRAMES = Table(
    "frames",
    "The tree of all stacks: each row is a function that its parent called. A stack is the key of "
    "its innermost frame.",
    (
        Column("frame", "int64", "Key."),
        PROCESS,
        Column("parent", "int64", "Key of the caller's frame; null: the outermost one.", nullable=True),
        Column("depth", "int32", "Frames below it: 0 for the outermost one."),
        Column("kind", "dict", "`python`, `native`, `kernel`, or `task` (start of an asyncio task)."),
        Column(
            "function",
            "dict",
            "Function: qualified name (Python) or demangled name (C++). Without a symbol: "
            "`[file]+0x12` (its start), `[file]` or `[generated code]`.",
        ),
        Column(
            "module",
            "dict",
            "File name of the library or program; `[kernel]` or `[its module]` of the kernel; null "
            "for Python.",
            nullable=True,
        ),
        Column("file", "dict", "Source file.", nullable=True),
        Column("line", "int32", "Line in it.", nullable=True),
        Column("first_line", "int32", "First line of the function.", nullable=True),
        Column(
            "address",
            "uint64",
            "Native code: address in its file. Kernel: address that ran.",
            nullable=True,
        ),
        Column("path", "dict", "Native code: its file.", nullable=True),
        Column("build_id", "dict", "Build id of that file, in hexadecimal digits.", nullable=True),
    ),
    sort=("frame",),
)
SAMPLES = Table(
    "samples",
    "Sampled stacks of threads; consecutive ticks with the same stack are one row.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "First tick with this stack."),
        time("end", "Last tick with this stack."),
        Column(
            "kind",
            "dict",
            "`python` (sampled by the clock, running or waiting) or `native` (sampled by perf, while "
            "running).",
        ),
        Column("count", "int64", "Ticks.", spread=True),
        Column(
            "weight", "int64", "Time that they stand for: ticks times the interval.", unit="ns", spread=True
        ),
        Column("on_cpu", "bool", "The thread ran since the tick before."),
        Column("gil", "bool", "It held the GIL.", nullable=True),
        Column("cpu", "int32", "CPU that it ran on.", nullable=True),
        _STACK,
        Column("task", "dict", "asyncio task that was running.", nullable=True),
        Column(
            "late",
            "bool",
            "`native` only: the Python frames were read late and may be wrong.",
            nullable=True,
        ),
        Column("cut", "bool", "The stack is deeper than the part that was read.", nullable=True),
        Column(
            "exception",
            "bool",
            "`python` only: the thread handled an exception (it was in an `except` block or a "
            "function called from there).",
            nullable=True,
        ),
        Column(
            "opcode",
            "dict",
            "`python` with `--python-sampling-opcodes`: instruction of the innermost Python frame, "
            "by the name that this Python gives it; a number if the names are unknown.",
            nullable=True,
        ),
        Column(
            "specialised",
            "bool",
            "True: `opcode` is a form specialised for the observed types. False: the general form of "
            "such an instruction. Null: no specialised form exists.",
            nullable=True,
        ),
        _RANGE,
    ),
    sort=("process", "start"),
    happens=True,
)
TASK_SAMPLES = Table(
    "task_samples",
    "Sampled stacks of asyncio tasks, running or awaiting; consecutive ticks with the same stack are "
    "one row.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "First tick with this stack."),
        time("end", "First tick with another stack."),
        Column("task", "dict", "Name of the task.", nullable=True),
        Column("number", "int64", "Number of the task in its process; distinguishes tasks of one name."),
        Column("state", "dict", "`running`, `ready` (waits for its turn) or `awaiting`."),
        Column(
            "doing",
            "dict",
            "Innermost function; if it awaits sampled tasks, one of them and the number of others.",
            nullable=True,
        ),
        Column(
            "depth",
            "int32",
            "Lane of the task on its thread, from 0; tasks of one lane never overlap.",
        ),
        Column(
            "outer",
            "bool",
            "It awaits another sampled task; sums over all tasks exclude it.",
        ),
        Column("count", "int64", "Ticks.", spread=True),
        Column(
            "weight", "int64", "Time that they stand for: ticks times the interval.", unit="ns", spread=True
        ),
        _STACK,
    ),
    sort=("process", "start"),
    happens=True,
)
THREAD_STATES = Table(
    "thread_states",
    "When threads ran, waited for a CPU, or were blocked.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("state", "dict", "`running`, `runnable` (it could run, but no CPU was free) or `blocked`."),
        Column("cpu", "int32", "CPU that it ran on.", nullable=True),
        Column(
            "exact",
            "bool",
            "True: from context switches. False: from differences of the scheduler's counters "
            "between two readings.",
        ),
        Column(
            "reason",
            "dict",
            "`blocked` only: the OS call, or `GIL`, in which it stopped.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
OSRT = Table(
    "osrt",
    "C library calls longer than the threshold; with --osrt-file-access, also all file calls.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("name", "dict", "Function, e.g. `poll`."),
        Column(
            "group",
            "dict",
            "`file`, `socket`, `wait for events`, `sleep`, `lock`, `process`, `memory`, `signal` or `other`.",
        ),
        Column("result", "int64", "Return value."),
        Column("error", "dict", "Error name, e.g. `EAGAIN`; null: success.", nullable=True),
        Column("fd", "int32", "Descriptor.", nullable=True),
        Column(
            "target",
            "dict",
            "Object of the call: path, `socket 127.0.0.1:80 (TCP)`, `unix /run/x`, `pipe`, program.",
            nullable=True,
        ),
        Column("bytes", "int64", "Bytes that it moved, or mapped.", nullable=True, unit="bytes"),
        Column(
            "object",
            "uint64",
            "Address of the awaited mutex, condition, semaphore, ….",
            nullable=True,
        ),
        _STACK,
        _RANGE,
    ),
    sort=("process", "start"),
    happens=True,
)
FILE_ACCESS = Table(
    "file_access",
    "Calls of `osrt` on files, or on descriptors that may be files.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("name", "dict", "Function, e.g. `read`."),
        Column("operation", "dict", "`open`, `close`, `read`, `write`, `sync`, `seek` or `other`."),
        Column("path", "dict", "File; null: unknown.", nullable=True),
        Column("fd", "int32", "Descriptor.", nullable=True),
        Column("bytes", "int64", "Bytes that were moved.", nullable=True, unit="bytes"),
        Column("asked", "int64", "Requested bytes.", nullable=True, unit="bytes"),
        Column("flags", "string", "Flags of open, e.g. `O_RDONLY|O_CLOEXEC`.", nullable=True),
        Column("error", "dict", "Error name, e.g. `ENOENT`; null: success.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)
GC = Table(
    "gc",
    "Collections of Python's garbage collector.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("generation", "int32", "0, 1 or 2; 2 = all objects."),
        Column("collected", "int64", "Objects that were freed."),
        Column("uncollectable", "int64", "Objects that could not be freed."),
    ),
    sort=("process", "start"),
    happens=True,
)
GIL = Table(
    "gil",
    "Holds of Python's global lock and waits for it above the threshold; `brief`: sums of shorter ones.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("state", "dict", "`hold`, `wait` or `brief`."),
        Column("held", "int64", "Time that the lock was held.", unit="ns", spread=True),
        Column("waited", "int64", "Time of waiting for the lock.", unit="ns", spread=True),
        Column("holds", "int64", "Number of holds."),
        Column("waits", "int64", "Number of waits."),
        Column("interpreter", "int32", "Number of the interpreter, 0 = the main one."),
    ),
    sort=("process", "start"),
    happens=True,
)
PYTHON_CALLS = Table(
    "python_calls",
    "Traced calls of Python functions; exceptions, warnings, tasks of executors; without a GIL, "
    "waits of threads.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("kind", "dict", "`function`, `exception`, `warning`, `task`, `lock` or `pause`."),
        Column(
            "name",
            "dict",
            "Qualified name of the function, or type of the exception, the warning, or the object "
            "with the awaited lock.",
        ),
        Column("file", "dict", "Source file.", nullable=True),
        Column("line", "int32", "Line in it.", nullable=True),
        Column("color", "uint32", "ARGB, if a colour was requested.", nullable=True),
        Column("depth", "int32", "Traced calls of the thread around it."),
        Column("parent", "int64", "Id of the traced call around it.", nullable=True),
        Column("clipped", "bool", "It began before the recording, or was still running at its end."),
        Column("failed", "bool", "It ended with an exception.", nullable=True),
        _RANGE,
    ),
    sort=("process", "start"),
    happens=True,
)
IMPORTS = Table(
    "imports",
    "Python modules that were imported for the first time.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("name", "dict", "Module."),
        Column("self", "int64", "Time without the modules that it imported.", unit="ns"),
        Column("depth", "int32", "Imports around it."),
        Column("parent", "int64", "Id of the import around it.", nullable=True),
        Column("failed", "bool", "The import raised an exception."),
    ),
    sort=("process", "start"),
    happens=True,
)

CPU_TABLES = (FRAMES, SAMPLES, TASK_SAMPLES, THREAD_STATES, OSRT, FILE_ACCESS, GC, GIL, PYTHON_CALLS, IMPORTS)
