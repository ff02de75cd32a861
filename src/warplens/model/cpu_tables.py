"""Tables of the CPU side: samples, stacks, thread states, C library calls, and Python's activity."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

_ID = Column("id", "int64", "Unique in its table; ids grow with start within a process.")
_START, _END = time("start", "Begin."), time("end", "End.")
_STACK = Column("stack", "int64", "Innermost frame: key of `frames`; null: none was taken.", nullable=True)
_RANGE = Column(
    "range",
    "int64",
    "Id of the innermost NVTX push/pop range of the thread that encloses the begin.",
    nullable=True,
)

FRAMES = Table(
    "frames",
    "The tree of all stacks: each row is a function that its parent called. A stack is the key of its innermost frame.",
    (
        Column("frame", "int64", "Key."),
        PROCESS,
        Column("parent", "int64", "Key of the caller's frame; null: the outermost one.", nullable=True),
        Column("depth", "int32", "Frames below it: 0 for the outermost one."),
        Column("kind", "dict", "`python`, `native`, `kernel` or `task`, where an asyncio task begins."),
        Column(
            "function",
            "dict",
            "Function: qualified name of Python, demangled name of C++. Without a symbol: `[file]+0x12`, where it begins, "
            "or `[file]`; `[generated code]`.",
        ),
        Column(
            "module",
            "dict",
            "File name of the library or program; `[kernel]` or `[its module]` of the kernel; null for Python.",
            nullable=True,
        ),
        Column("file", "dict", "Source file.", nullable=True),
        Column("line", "int32", "Line in it.", nullable=True),
        Column("first_line", "int32", "Line where the function begins.", nullable=True),
        Column(
            "address",
            "uint64",
            "Of native code: address in its file; of the kernel: where it ran.",
            nullable=True,
        ),
        Column("path", "dict", "Of native code: the file that it is in.", nullable=True),
        Column("build_id", "dict", "Of that file, in hexadecimal digits.", nullable=True),
    ),
    sort=("frame",),
)
SAMPLES = Table(
    "samples",
    "What threads were seen to do: consecutive ticks with the same stack are one row.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "First tick that saw it."),
        time("end", "Last one."),
        Column(
            "kind",
            "dict",
            "`python` (by the clock, whether the thread ran or not) or `native` (by perf, while it ran).",
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
            "Of `native`: the Python frames were read too late to be sure of them.",
            nullable=True,
        ),
        Column("cut", "bool", "The stack is deeper than what was read of it.", nullable=True),
        Column(
            "exception",
            "bool",
            "Of `python`: the thread handled an exception: it was in an `except` block, or in what that called.",
            nullable=True,
        ),
        Column(
            "opcode",
            "dict",
            "Of `python`, with `--python-sampling-opcodes`: instruction of the innermost Python frame as it stood in memory, as that "
            "Python calls it; a number where it did not say its names.",
            nullable=True,
        ),
        Column(
            "specialised",
            "bool",
            "Of `opcode`: true: a form for the types that it met; false: the general form of an instruction that has such; null: no such.",
            nullable=True,
        ),
        _RANGE,
    ),
    sort=("process", "start"),
    happens=True,
)
TASK_SAMPLES = Table(
    "task_samples",
    "What asyncio tasks were seen to do or to await: consecutive ticks with the same stack are one row.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "First tick that saw it."),
        time("end", "The tick that saw something else."),
        Column("task", "dict", "Name of the task.", nullable=True),
        Column("number", "int64", "Tells tasks of one name apart: the number of the task in its process."),
        Column("state", "dict", "`running`, `ready` (it waits for its turn) or `awaiting`."),
        Column(
            "doing",
            "dict",
            "Innermost function that it was in; where it awaits a task that was seen, this task, and how many of other names.",
            nullable=True,
        ),
        Column(
            "depth",
            "int32",
            "Lane on the thread, from 0, which the task has for all its life; no two tasks of a lane overlap.",
        ),
        Column(
            "outer",
            "bool",
            "It awaits another task, whose stack stands on its own: sums of all tasks leave it out.",
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
            "True: from the scheduler's switches; false: from what it had counted between two looks.",
        ),
        Column(
            "reason",
            "dict",
            "Of `blocked`: the OS call, or `GIL`, that it was in when it stopped.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
OSRT = Table(
    "osrt",
    "Calls of the C library that took longer than the threshold; with --osrt-file-access those on files, however short.",
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
        Column("result", "int64", "What it returned."),
        Column("error", "dict", "`EAGAIN` and the like; null: it succeeded.", nullable=True),
        Column("fd", "int32", "Descriptor.", nullable=True),
        Column(
            "target",
            "dict",
            "What it was about: path, `socket 127.0.0.1:80 (TCP)`, `unix /run/x`, `pipe`, program.",
            nullable=True,
        ),
        Column("bytes", "int64", "Bytes that it moved, or mapped.", nullable=True, unit="bytes"),
        Column(
            "object",
            "uint64",
            "Address of the mutex, condition, semaphore, … that it waited for.",
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
    "The calls of `osrt` that are on files, or on what may be one.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("name", "dict", "Function, e.g. `read`."),
        Column("operation", "dict", "`open`, `close`, `read`, `write`, `sync`, `seek` or `other`."),
        Column("path", "dict", "File; null: not known.", nullable=True),
        Column("fd", "int32", "Descriptor.", nullable=True),
        Column("bytes", "int64", "Bytes that were moved.", nullable=True, unit="bytes"),
        Column("asked", "int64", "Requested bytes.", nullable=True, unit="bytes"),
        Column("flags", "string", "Of open: `O_RDONLY|O_CLOEXEC` and the like.", nullable=True),
        Column("error", "dict", "`ENOENT` and the like; null: it succeeded.", nullable=True),
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
        Column("uncollectable", "int64", "Objects that could not be."),
    ),
    sort=("process", "start"),
    happens=True,
)
GIL = Table(
    "gil",
    "Who held Python's global lock, and who waited for it, longer than the threshold; `brief`: sums of what was shorter.",
    (
        _ID,
        PROCESS,
        THREAD,
        _START,
        _END,
        Column("state", "dict", "`hold`, `wait` or `brief`."),
        Column("held", "int64", "Time that the lock was held.", unit="ns", spread=True),
        Column("waited", "int64", "Time that was waited for it.", unit="ns", spread=True),
        Column("holds", "int64", "How many holds."),
        Column("waits", "int64", "How many waits."),
        Column("interpreter", "int32", "Number of the interpreter, 0 = the main one."),
    ),
    sort=("process", "start"),
    happens=True,
)
PYTHON_CALLS = Table(
    "python_calls",
    "Calls of Python functions that were traced; exceptions, warnings, tasks of executors; without a GIL, the waits of threads.",
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
            "Qualified name of the function, or the type of the exception, warning or object whose lock was waited for.",
        ),
        Column("file", "dict", "Source file.", nullable=True),
        Column("line", "int32", "Line in it.", nullable=True),
        Column("color", "uint32", "ARGB, if a colour was requested.", nullable=True),
        Column("depth", "int32", "Traced calls of the thread around it."),
        Column("parent", "int64", "Id of the traced call around it.", nullable=True),
        Column("clipped", "bool", "It had begun before the recording, or was still running at its end."),
        Column("failed", "bool", "It ended by an exception.", nullable=True),
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
        Column("self", "int64", "Time without that of the modules that it imported.", unit="ns"),
        Column("depth", "int32", "Imports around it."),
        Column("parent", "int64", "Id of the import around it.", nullable=True),
        Column("failed", "bool", "The import raised."),
    ),
    sort=("process", "start"),
    happens=True,
)

CPU_TABLES = (FRAMES, SAMPLES, TASK_SAMPLES, THREAD_STATES, OSRT, FILE_ACCESS, GC, GIL, PYTHON_CALLS, IMPORTS)
