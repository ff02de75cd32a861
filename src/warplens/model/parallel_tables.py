"""Tables of MPI, OpenMP, OpenACC and system calls, as other tools record them."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

_ID = Column("id", "int64", "Unique in its table; ids grow with start within a process.")
_WHEN = (_ID, PROCESS, THREAD, time("start", "Begin."), time("end", "End."))

MPI_EVENTS = Table(
    "mpi_events",
    "Calls of MPI.",
    (
        *_WHEN,
        Column("name", "dict", "Function, e.g. `MPI_Allreduce`."),
        Column("kind", "dict", "`p2p`, `collective`, `wait` (for what had begun before) or `other`."),
        Column("communicator", "int64", "Number of the communicator.", nullable=True),
        Column("rank", "int32", "Who called: its rank among all processes.", nullable=True),
        Column("peer", "int32", "Of `p2p`: rank of the other side.", nullable=True),
        Column("root", "int32", "Of `collective`: rank of the root, where there is one.", nullable=True),
        Column("tag", "int32", "Of `p2p`: its tag.", nullable=True),
        Column("sent", "int64", "Of `collective`: what the caller gave.", nullable=True, unit="bytes"),
        Column("received", "int64", "Of `collective`: what the caller got.", nullable=True, unit="bytes"),
        Column("bytes", "int64", "Of `p2p`: length of the message.", nullable=True, unit="bytes"),
        Column(
            "range",
            "int64",
            "Id of the innermost NVTX push/pop range of the thread that encloses the begin.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
OPENMP_EVENTS = Table(
    "openmp_events",
    "What the runtime of OpenMP did: parallel regions, waits, tasks, locks.",
    (
        *_WHEN,
        Column(
            "kind",
            "dict",
            "`thread`, `parallel`, `sync region`, `sync region wait`, `task`, `mutex wait`, `workshare`, …",
        ),
        Column("name", "dict", "As it was recorded, where that says more.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)
OPENACC_EVENTS = Table(
    "openacc_events",
    "What the runtime of OpenACC did.",
    (
        *_WHEN,
        Column("kind", "dict", "`data`, `launch` or `other`."),
        Column("name", "dict", "What, e.g. `Enter Data`, with the place in the source where that is known."),
    ),
    sort=("process", "start"),
    happens=True,
)
SYSCALLS = Table(
    "syscalls",
    "System calls, as the kernel saw them.",
    (
        *_WHEN,
        Column("name", "dict", "Call, e.g. `futex`."),
        Column("result", "int64", "What it returned, where that was recorded.", nullable=True),
        Column("stack", "int64", "Innermost frame of the caller: key of `frames`.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)

PARALLEL_TABLES = (MPI_EVENTS, OPENMP_EVENTS, OPENACC_EVENTS, SYSCALLS)
