"""Tables of MPI, OpenMP, OpenACC and system calls, as other tools record them."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

_ID = Column("id", "int64", "Unique in its table; ids grow with start within a process.")
_WHEN = (_ID, PROCESS, THREAD, time("start", "Start."), time("end", "End."))

MPI_EVENTS = Table(
    "mpi_events",
    "MPI calls.",
    (
        *_WHEN,
        Column("name", "dict", "Function, e.g. `MPI_Allreduce`."),
        Column(
            "kind", "dict", "`p2p`, `collective`, `wait` (for an operation that began before) or `other`."
        ),
        Column("communicator", "int64", "Number of the communicator.", nullable=True),
        Column("rank", "int32", "Rank of the caller among all processes.", nullable=True),
        Column("peer", "int32", "`p2p` only: rank of the other side.", nullable=True),
        Column("root", "int32", "`collective` only: rank of the root, if there is one.", nullable=True),
        Column("tag", "int32", "`p2p` only: tag of the message.", nullable=True),
        Column("sent", "int64", "`collective` only: input of the caller.", nullable=True, unit="bytes"),
        Column("received", "int64", "`collective` only: output of the caller.", nullable=True, unit="bytes"),
        Column("bytes", "int64", "`p2p` only: length of the message.", nullable=True, unit="bytes"),
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
    "Events of the OpenMP runtime: parallel regions, waits, tasks, locks.",
    (
        *_WHEN,
        Column(
            "kind",
            "dict",
            "`thread`, `parallel`, `sync region`, `sync region wait`, `task`, `mutex wait`, `workshare`, …",
        ),
        Column("name", "dict", "Recorded name, if it adds information.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)
OPENACC_EVENTS = Table(
    "openacc_events",
    "Events of the OpenACC runtime.",
    (
        *_WHEN,
        Column("kind", "dict", "`data`, `launch` or `other`."),
        Column("name", "dict", "Event, e.g. `Enter Data`, with its place in the source if known."),
    ),
    sort=("process", "start"),
    happens=True,
)
SYSCALLS = Table(
    "syscalls",
    "System calls, recorded in the kernel.",
    (
        *_WHEN,
        Column("name", "dict", "Call, e.g. `futex`."),
        Column("result", "int64", "Return value, if it was recorded.", nullable=True),
        Column("stack", "int64", "Innermost frame of the caller: key of `frames`.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)

PARALLEL_TABLES = (MPI_EVENTS, OPENMP_EVENTS, OPENACC_EVENTS, SYSCALLS)
