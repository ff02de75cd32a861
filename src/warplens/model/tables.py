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
    "Every process of the program, one row for each program that ran in it; the primary process is the one that was launched.",
    (
        PROCESS,
        Column("pid", "int32", "System process id."),
        Column(
            "parent",
            "int64",
            "Key of the process that it comes from, where that is known; of what another program became by exec, that program's.",
            nullable=True,
        ),
        Column("parent_pid", "int32", "System id of the parent process."),
        Column("host", "string", "Host name."),
        Column("rank", "int32", "Global rank (MPI, Slurm, torchelastic).", nullable=True),
        Column("local_rank", "int32", "Rank on its host.", nullable=True),
        Column("executable", "string", "Path of the program."),
        Column("command", "string", "Command line, shell-quoted. The environment is never recorded."),
        time("start", "When the process began; where that is not known, when the agent started in it."),
        time(
            "end",
            "When the process ended, or became another program; else when it was last seen to write, or the recording ended.",
        ),
        Column("primary", "bool", "True for the launched process."),
        Column(
            "exit_status",
            "int32",
            "Exit status, 128+signal when killed; null where it is not known.",
            nullable=True,
        ),
        Column(
            "exited",
            "bool",
            "True when the process ran its exit handlers; false: killed, `os._exit`, or still running.",
        ),
        Column(
            "name",
            "string",
            "Short name: of the program, or of the script that it interprets.",
            nullable=True,
        ),
        Column(
            "began",
            "string",
            "`launch`, `fork` (goes on with its parent's program), `spawn` (a new process with another program) or `exec` (the "
            "program of a process made way for this one). Null: not known.",
            nullable=True,
        ),
        Column(
            "ended",
            "string",
            "`exit`, `signal`, `exec` (it became another program, in another row) or `running` when the recording ended. Null: not known.",
            nullable=True,
        ),
        Column(
            "recorded",
            "bool",
            "True when it recorded something; false: its row is all that there is.",
            nullable=True,
        ),
        Column(
            "not_recorded",
            "string",
            "Why nothing was recorded, or the program did not start: `made no NVTX or CUDA call`, `musl`, …",
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
        Column("name", "string", "Name given through NVTX, else the system's.", nullable=True),
        time("start", "First time the agent saw the thread."),
    ),
    sort=("thread",),
)
CLOCKS = Table(
    "clocks",
    "The clocks of each host, read together about once a second by the launcher.",
    (
        Column("host", "string", "Host name."),
        Column("kind", "string", "What the agent reads: `monotonic`, `tsc` or `cntvct`."),
        Column("counter", "uint64", "The counter (ticks; ns for `monotonic`)."),
        Column("monotonic", "int64", "CLOCK_MONOTONIC.", unit="ns"),
        Column("realtime", "int64", "CLOCK_REALTIME, since 1970.", unit="ns"),
    ),
    sort=("host", "monotonic"),
)
DIAGNOSTICS = Table(
    "diagnostics",
    "What was lost, guessed or could not be recorded. Nothing is dropped without a row here.",
    (
        Column("severity", "string", "`info`, `warning` or `error`."),
        Column("code", "string", "Stable name of the condition, e.g. `dropped-records`."),
        Column("source", "string", "The source or stage that says it: `nvtx`, `launcher`, `report`, …"),
        Column("message", "string", "One sentence: what, where, what to do."),
        Column("count", "int64", "How many records or events it concerns.", nullable=True),
        Column("process", "int64", "Key of `processes`, where it concerns one.", nullable=True),
        time("time", "When, where known.", nullable=True),
    ),
)
TARGETS = Table(
    "targets",
    "The hosts that were recorded.",
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
