"""The tables of a report: every column with its type, unit and meaning.

Types are `int16 int32 int64 uint32 uint64 float64 bool string dict` (`dict`: a string column stored as a
dictionary). Columns with unit `ns` are CLOCK_MONOTONIC of the recording host unless the text says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column: `unit` is `ns`, `bytes` or empty; `clock` marks times that move when hosts are aligned."""

    name: str
    type: str
    text: str
    nullable: bool = False
    unit: str = ""
    clock: bool = False


@dataclass(frozen=True)
class Table:
    """One table of a report; rows are sorted by `sort`."""

    name: str
    text: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """Return the column called `name`; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name!r}")


def _time(name: str, text: str, nullable: bool = False) -> Column:
    return Column(name, "int64", text, nullable, "ns", clock=True)


_PROCESS = Column("process", "int64", "Key of `processes`.")
_THREAD = Column("thread", "int64", "Key of `threads`.")
_LABELS = (
    Column("domain", "dict", "NVTX domain; null for the default domain.", nullable=True),
    Column("category", "dict", "Category name, or its number where it has no name.", nullable=True),
    Column("category_id", "uint32", "Category number as given by the program.", nullable=True),
    Column("message", "dict", "The range's or mark's name.", nullable=True),
    Column("color", "uint32", "0xAARRGGBB as given; alpha 0 means opaque.", nullable=True),
    Column("payload_int", "int64", "Payload, where it is an integer (uint64 above 2^63-1 wraps).", nullable=True),
    Column("payload_float", "float64", "Payload, where it is a float or double.", nullable=True),
)

PROCESSES = Table(
    "processes",
    "The traced processes, one row each; the primary process is the one that was launched.",
    (
        _PROCESS,
        Column("pid", "int32", "System process id."),
        Column("parent", "int64", "Key of the parent process, where it was traced too.", nullable=True),
        Column("parent_pid", "int32", "System id of the parent process."),
        Column("host", "string", "Host name."),
        Column("rank", "int32", "Global rank (MPI, Slurm, torchelastic).", nullable=True),
        Column("local_rank", "int32", "Rank on its host.", nullable=True),
        Column("executable", "string", "Path of the program."),
        Column("command", "string", "Command line, shell-quoted. The environment is never recorded."),
        _time("start", "When the agent started in this process."),
        _time("end", "When the process was last seen to write, or ended."),
        Column("primary", "bool", "True for the launched process."),
        Column("exit_status", "int32", "Exit status, 128+signal when killed; primary process only.", nullable=True),
        Column("exited", "bool", "True when the process ran its exit handlers; false: killed, `os._exit`, or still running."),
    ),
    ("process",),
)
THREADS = Table(
    "threads",
    "The threads that recorded something.",
    (
        _THREAD,
        _PROCESS,
        Column("tid", "int32", "System thread id."),
        Column("name", "string", "Name given through NVTX, else the system's.", nullable=True),
        _time("start", "First time the agent saw the thread."),
    ),
    ("thread",),
)
NVTX_RANGES = Table(
    "nvtx_ranges",
    "NVTX ranges, push/pop and start/end.",
    (
        Column("id", "int64", "Unique in the report; ids grow with start within a process."),
        _PROCESS,
        _THREAD,
        Column("end_thread", "int64", "Thread that ended a start/end range, where it is another one.", nullable=True),
        _time("start", "Begin."),
        _time("end", "End; for unfinished ranges the last time seen in the process."),
        *_LABELS,
        Column("style", "dict", "`PushPop` or `StartEnd`."),
        Column("depth", "int32", "Lane on the thread (push/pop) or process (start/end), from 0; no two ranges of a lane overlap."),
        Column("parent", "int64", "Id of the innermost push/pop range on the thread that encloses it.", nullable=True),
        Column("unfinished", "bool", "Still open when the process ended."),
        Column("inherited", "bool", "Open in the parent at `fork`; start is the fork."),
        Column("clipped", "bool", "Crosses an edge of the capture."),
    ),
    ("process", "start"),
)
NVTX_MARKS = Table(
    "nvtx_marks",
    "NVTX marks: instants.",
    (_PROCESS, _THREAD, _time("start", "When."), *_LABELS),
    ("process", "start"),
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
    ("host", "monotonic"),
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
        _time("time", "When, where known.", nullable=True),
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
    ("host",),
)

TABLES: dict[str, Table] = {table.name: table for table in (PROCESSES, THREADS, NVTX_RANGES, NVTX_MARKS, CLOCKS, DIAGNOSTICS, TARGETS)}
