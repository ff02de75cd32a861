"""SELECTs that make most tables of an export from those of a report.

A column called `NAME@` holds texts, of which the file has the numbers; `NAME#` holds stacks, of which it has call chains. `$origin` stands
for the start of the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warplens.exporters.nsys.layout import TABLES
from warplens.model import nsys_labels as labels

NO_EVENT = 0xFFFFFFFF

# Global ids: hardware, machine (8 bits each), process, thread (24 bits each). A host is a machine.
IDS = """
WITH h AS (SELECT host, row_number() OVER (ORDER BY min(process)) AS n FROM processes GROUP BY host),
q AS (
    SELECT process, host, executable, command, "primary", rank, processes.start AS began,
           h.n // 256 AS hw, h.n % 256 AS vm, pid::BIGINT & 16777215 AS id,
           ((h.n // 256) << 56) | ((h.n % 256) << 48) | ((pid::BIGINT & 16777215) << 24) AS gpid
    FROM processes JOIN h USING (host)
),
g AS (SELECT thread, gpid | (tid::BIGINT & 16777215) AS gtid, threads.name, threads.start FROM threads JOIN q USING (process))
"""


@dataclass(frozen=True)
class Select:
    """One table: what it is made of, and whether `table` has anything to make it of."""

    source: str
    text: str


def number(column: str, names: Mapping[int, str], other: int | None = 0) -> str:
    """Return SQL for the number that a kind has in nsys.

    `other` for those that it does not know.
    """
    first = {name: key for key, name in reversed(list(names.items()))}
    cases = " ".join(f"WHEN '{name}' THEN {key}" for name, key in first.items())
    return f"CASE {column} {cases} ELSE {'NULL' if other is None else other} END"


_OF_THREAD = "JOIN g ON t.thread = g.thread"
_OF_PROCESS = "JOIN q ON t.process = q.process"
_SPAN = 't.start - $origin AS start, t."end" - $origin AS "end"'
_WORK = f"{_SPAN}, t.device AS deviceId, t.context AS contextId, t.stream AS streamId, t.correlation AS correlationId, gpid AS globalPid"
_ADDRESS = "t.address"


def _memory(column: str) -> str:
    return number(column, labels.MEMORY_KINDS, None)


def _sizes() -> str:
    plain = [
        f"{what}_{axis} AS {what}{axis.upper()}" for what in ("grid", "block", "cluster") for axis in "xyz"
    ]
    return ", ".join(plain)


SELECTS: dict[str, Select] = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": Select(
        "cuda_api",
        f"""SELECT {_SPAN}, CASE api WHEN 'driver' THEN 1 ELSE 0 END AS eventClass, gtid AS globalTid, correlation AS correlationId,
        t.name AS "nameId@", result AS returnValue, stack AS "callchainId#" FROM cuda_api t {_OF_THREAD}""",
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": Select(
        "kernels",
        f"""SELECT {_WORK}, demangled AS "demangledName@", name AS "shortName@", mangled AS "mangledName@",
        {number("launch_type", labels.LAUNCH_TYPES, None)} AS launchType, registers AS registersPerThread, {_sizes()},
        static_shared AS staticSharedMemory, dynamic_shared AS dynamicSharedMemory, coalesce(local_per_thread, 0) AS localMemoryPerThread,
        coalesce(local_total, 0) AS localMemoryTotal, shared_executed AS sharedMemoryExecuted, 0 AS gridId, graph AS graphId,
        graph_node AS graphNodeId, '' AS tensorSizeMinusOneElements FROM kernels t {_OF_PROCESS}""",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": Select(
        "memcpys",
        f"""SELECT {_WORK}, bytes, {number("kind", labels.COPY_KINDS)} AS copyKind, {_memory("source_kind")} AS srcKind,
        {_memory("destination_kind")} AS dstKind, source_device AS srcDeviceId, destination_device AS dstDeviceId, copies AS copyCount,
        graph_node AS graphNodeId FROM memcpys t {_OF_PROCESS}""",
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": Select(
        "memsets",
        f"""SELECT {_WORK}, value, bytes, {_memory("memory_kind")} AS memKind, graph_node AS graphNodeId FROM memsets t {_OF_PROCESS}""",
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": Select(
        "graphs",
        f"""SELECT {_WORK}, coalesce(graph, 0) AS graphId, coalesce(graph_exec, 0) AS graphExecId FROM graphs t {_OF_PROCESS}""",
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": Select(
        "syncs",
        f"""SELECT {_SPAN}, coalesce(c.device, 0) AS deviceId, coalesce(t.context, 0) AS contextId,
        coalesce(t.stream, {NO_EVENT}) AS streamId, t.correlation AS correlationId, gpid AS globalPid,
        {number("t.kind", labels.SYNC_KINDS)} AS syncType, coalesce(t.event, {NO_EVENT}) AS eventId, t.event_sync AS eventSyncId
        FROM syncs t {_OF_PROCESS} LEFT JOIN contexts c ON c.process = t.process AND c.context = t.context""",
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": Select(
        "cuda_events",
        f"""SELECT t.start - $origin AS timestamp, coalesce(t.device, 0) AS deviceId, t.context AS contextId, t.stream AS streamId,
        t.correlation AS correlationId, gpid AS globalPid, event AS eventId, event_sync AS eventSyncId FROM cuda_events t {_OF_PROCESS}""",
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": Select(
        "overhead",
        f"""SELECT {_SPAN}, 103 AS eventClass, coalesce(gtid, gpid) AS globalTid, t.correlation AS correlationId, t.name AS "nameId@",
        {number("t.kind", labels.OVERHEAD_KINDS)} AS overheadType FROM overhead t {_OF_PROCESS} LEFT JOIN g ON t.thread = g.thread
        WHERE t.kind NOT LIKE 'JIT %'""",
    ),
    "CUPTI_ACTIVITY_KIND_JIT": Select(
        "overhead",
        f"""SELECT {_SPAN}, 102 AS eventClass, coalesce(gtid, gpid) AS globalTid, t.correlation AS correlationId, t.name AS "nameId@",
        2 AS overheadType, 0 AS jitEntryType, {number("t.kind", labels.JIT_OPERATIONS)} AS jitOperationType FROM overhead t {_OF_PROCESS}
        LEFT JOIN g ON t.thread = g.thread WHERE t.kind LIKE 'JIT %'""",
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": Select(
        "gpu_memory",
        f"""SELECT t.start - $origin AS start, gpid AS globalPid, coalesce(device, 0) AS deviceId, coalesce(context, 0) AS contextId,
        {_ADDRESS} AS address, 0 AS pc, bytes, coalesce({_memory("kind")}, 7) AS memKind,
        {number("operation", labels.MEMORY_OPERATIONS)} AS memoryOperationType, t.name AS name, t.correlation AS correlationId,
        stream AS streamId, pool AS localMemoryPoolAddress, pool_size AS localMemoryPoolSize, pool_used AS localMemoryPoolUtilizedSize
        FROM gpu_memory t {_OF_PROCESS} WHERE operation NOT LIKE 'pool %'""",
    ),
    "CUDA_GPU_MEMORY_POOL_EVENTS": Select(
        "gpu_memory",
        f"""SELECT t.start - $origin AS start, gpid AS globalPid, coalesce(device, 0) AS deviceId, coalesce(pool, t.address) AS address,
        {number("operation", labels.POOL_OPERATIONS)} AS operationType, 1 AS poolType, t.correlation AS correlationId,
        pool_size AS localMemoryPoolSize, pool_used AS localMemoryPoolUtilizedSize FROM gpu_memory t {_OF_PROCESS}
        WHERE operation LIKE 'pool %'""",
    ),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": Select(
        "um_events",
        f"""SELECT t.start - $origin AS start, gpid AS globalPid, {_ADDRESS} AS address,
        coalesce(instruction, '') AS "CpuInstruction@", '' AS "module@" FROM um_events t {_OF_PROCESS}
        WHERE kind = 'CPU page fault'""",
    ),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": Select(
        "um_events",
        f"""SELECT {_SPAN}, gpid AS globalPid, coalesce(device, 0) AS deviceId, {_ADDRESS} AS address,
        coalesce(faults, 1) AS numberOfPageFaults, {number("cause", labels.FAULT_ACCESS)} AS faultAccessType FROM um_events t {_OF_PROCESS}
        WHERE kind = 'GPU page fault'""",
    ),
    "OSRT_API": Select(
        "osrt",
        f"""SELECT {_SPAN}, 27 AS eventClass, gtid AS globalTid, t.name AS "nameId@", result AS returnValue, stack AS "callchainId#",
        0 AS argumentsId FROM osrt t {_OF_THREAD}""",
    ),
    "SYSCALL": Select(
        "syscalls",
        f"""SELECT {_SPAN}, 0 AS eventClass, gtid AS globalTid, t.name AS "nameId@", stack AS "callchainId#"
        FROM syscalls t {_OF_THREAD}""",
    ),
    "DIAGNOSTIC_EVENT": Select(
        "diagnostics",
        """SELECT coalesce(time - $origin, 0) AS timestamp, 1 AS timestampType, 3 AS source,
        CASE severity WHEN 'warning' THEN 2 WHEN 'error' THEN 3 ELSE 1 END AS severity, message AS text, gpid AS globalPid
        FROM diagnostics t LEFT JOIN q ON t.process = q.process""",
    ),
}
# Migrations of unified memory are copies there.
MIGRATIONS = Select(
    "um_events",
    f"""SELECT {_SPAN}, coalesce(t.device, 0) AS deviceId, 0 AS contextId, 0 AS streamId, gpid AS globalPid, coalesce(bytes, 0) AS bytes,
    {number("kind", labels.UNIFIED)} AS copyKind, 4 AS srcKind, 4 AS dstKind, source AS srcDeviceId, destination AS dstDeviceId,
    {number("cause", labels.MIGRATION_CAUSES)} AS migrationCause, {_ADDRESS} AS virtualAddress FROM um_events t {_OF_PROCESS}
    WHERE kind IN ('HtoD', 'DtoH', 'DtoD')""",
)
_MPI = f'{_SPAN}, gtid AS globalTid, t.name AS "textId@"'
_ABOUT = "communicator AS commHandle, communicator AS commUid"
for _table, _kind, _more in (
    ("MPI_P2P_EVENTS", "p2p", f", {_ABOUT}, tag, peer AS remoteRank, bytes AS size"),
    (
        "MPI_COLLECTIVES_EVENTS",
        "collective",
        f", {_ABOUT}, root AS rootRank, sent AS size, received AS recvSize",
    ),
    ("MPI_START_WAIT_EVENTS", "wait", ""),
    ("MPI_OTHER_EVENTS", "other", ""),
):
    SELECTS[_table] = Select(
        "mpi_events", f"SELECT {_MPI}{_more} FROM mpi_events t {_OF_THREAD} WHERE kind = '{_kind}'"
    )
for _kind in ("data", "launch", "other"):
    SELECTS[f"CUPTI_ACTIVITY_KIND_OPENACC_{_kind.upper()}"] = Select(
        "openacc_events",
        f"""SELECT {_SPAN}, t.name AS "nameId@", gtid AS globalTid, 0 AS eventKind, 0 AS "DeviceType", 0 AS "lineNo", 0 AS cuDeviceId,
        0 AS cuContextId, 0 AS cuStreamId FROM openacc_events t {_OF_THREAD} WHERE kind = '{_kind}'""",
    )
for _table in TABLES:
    if _table.startswith("OPENMP_EVENT_KIND_"):
        SELECTS[_table] = Select(
            "openmp_events",
            f"""SELECT {_SPAN}, 78 AS eventClass, gtid AS globalTid, coalesce(t.name, kind) AS "nameId@" FROM openmp_events t {_OF_THREAD}
            WHERE kind = '{_table.removeprefix("OPENMP_EVENT_KIND_").replace("_", " ").lower()}'""",
        )
