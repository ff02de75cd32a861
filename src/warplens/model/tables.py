"""The tables of a report: every column with its type, unit and meaning (see `model.table` for the types)."""

from __future__ import annotations

from warplens.model.capture_tables import CAPTURE_WINDOWS
from warplens.model.cpu_tables import CPU_TABLES
from warplens.model.cuda_tables import CUDA_TABLES
from warplens.model.framework_tables import FRAMEWORK_TABLES
from warplens.model.host_tables import HOST_METRICS, USAGE
from warplens.model.intrakernel_tables import INTRAKERNEL_TABLES
from warplens.model.nvtx_tables import NVTX_TABLES
from warplens.model.parallel_tables import PARALLEL_TABLES
from warplens.model.table import PROCESS, THREAD, Column, Table, time

__all__ = ["TABLES", "Column", "Table"]

PROCESSES = Table(
    "processes",
    "All processes of the run, one row for each program that ran in a process; the primary process "
    "is the launched one.",
    (
        PROCESS,
        Column("pid", "int32", "System process id."),
        Column(
            "parent",
            "int64",
            "Key of the parent process, if known; after an exec, key of the previous program in the process.",
            nullable=True,
        ),
        Column("parent_pid", "int32", "System id of the parent process."),
        Column("host", "string", "Host name."),
        Column("rank", "int32", "Global rank (MPI, Slurm, torchelastic).", nullable=True),
        Column("local_rank", "int32", "Rank on its host.", nullable=True),
        Column("executable", "string", "Path of the program."),
        Column("command", "string", "Command line, shell-quoted. The environment is never recorded."),
        time("start", "Start of the process; if unknown, start of the agent in it."),
        time(
            "end",
            "End of the process, or the time of its exec; if unknown, its last write or the end of "
            "the recording.",
        ),
        Column("primary", "bool", "True: the launched process."),
        Column(
            "exit_status",
            "int32",
            "Exit status, 128+signal if killed; null: unknown.",
            nullable=True,
        ),
        Column(
            "exited",
            "bool",
            "True: the process ran its exit handlers. False: killed, `os._exit`, or still running.",
        ),
        Column(
            "name",
            "string",
            "Short name of the program, or of the script that it interprets.",
            nullable=True,
        ),
        Column(
            "began",
            "string",
            "`launch`, `fork` (continues its parent's program), `spawn` (a new process with another "
            "program) or `exec` (this program replaced another one in its process). Null: unknown.",
            nullable=True,
        ),
        Column(
            "ended",
            "string",
            "`exit`, `signal`, `exec` (another program, in another row, replaced it) or `running` "
            "(at the end of the recording). Null: unknown.",
            nullable=True,
        ),
        Column(
            "recorded",
            "bool",
            "True: it recorded something. False: this row is all of it.",
            nullable=True,
        ),
        Column(
            "not_recorded",
            "string",
            "Reason for a missing recording or a failed start: `made no NVTX or CUDA call`, `musl`, …",
            nullable=True,
        ),
        *USAGE,
    ),
    sort=("process",),
)
THREADS = Table(
    "threads",
    "The threads that recorded something.",
    (
        THREAD,
        PROCESS,
        Column("tid", "int32", "System thread id."),
        Column("name", "string", "Name given through NVTX, or else the system's.", nullable=True),
        time("start", "First event of the thread in the agent."),
    ),
    sort=("thread",),
)
CLOCKS = Table(
    "clocks",
    "Clocks of each host, which the launcher reads together about once a second.",
    (
        Column("host", "string", "Host name."),
        Column("kind", "string", "Clock of the agent: `monotonic`, `tsc` or `cntvct`."),
        Column("counter", "uint64", "The counter (ticks; ns for `monotonic`)."),
        Column("monotonic", "int64", "CLOCK_MONOTONIC.", unit="ns"),
        Column("realtime", "int64", "CLOCK_REALTIME, since 1970.", unit="ns"),
    ),
    sort=("host", "monotonic"),
)
DIAGNOSTICS = Table(
    "diagnostics",
    "Losses, estimates and failures of the recording. Nothing is dropped without a row here.",
    (
        Column("severity", "string", "`info`, `warning` or `error`."),
        Column("code", "string", "Stable name of the condition, e.g. `dropped-records`."),
        Column("source", "string", "Reporting source or stage: `nvtx`, `launcher`, `report`, …"),
        Column("message", "string", "One sentence: what happened, where, what to do."),
        Column("count", "int64", "Number of affected records or events.", nullable=True),
        Column("process", "int64", "Key of `processes`, if it concerns one.", nullable=True),
        time("time", "Time, if known.", nullable=True),
    ),
)
TARGETS = Table(
    "targets",
    "Recorded hosts.",
    (
        Column("host", "string", "Host name."),
        Column("boot_id", "string", "Kernel boot id."),
        Column("os", "string", "Operating system, e.g. `Debian GNU/Linux 12`."),
        Column("kernel", "string", "Kernel release."),
        Column("machine", "string", "Architecture, e.g. `x86_64`."),
        Column("cpu", "string", "CPU model."),
        Column("cpus", "int32", "Logical CPUs."),
        Column("memory", "int64", "Main memory.", unit="bytes"),
    ),
    sort=("host",),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        PROCESSES,
        THREADS,
        CAPTURE_WINDOWS,
        *NVTX_TABLES,
        *CUDA_TABLES,
        *INTRAKERNEL_TABLES,
        *CPU_TABLES,
        HOST_METRICS,
        *FRAMEWORK_TABLES,
        *PARALLEL_TABLES,
        CLOCKS,
        DIAGNOSTICS,
        TARGETS,
    )
}
