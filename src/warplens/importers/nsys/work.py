"""GPU work: kernels, copies, memsets, and graphs launched as a whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from warplens.importers.nsys.names import encoded, labelled
from warplens.importers.nsys.taken import NsysContext, NsysEvents, narrow
from warplens.model import nsys_labels as labels

_COMMON = (
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
    "correlationId",
    "globalPid",
    "graphNodeId",
    "graphId",
)
_AXES = ("X", "Y", "Z")


def kernels(context: NsysContext) -> None:
    """Write `kernels`."""
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    sizes = [f"{what}{axis}" for what in ("grid", "block", "cluster") for axis in _AXES]
    names = ("demangledName", "shortName", "mangledName")
    memory = (
        "staticSharedMemory",
        "dynamicSharedMemory",
        "sharedMemoryExecuted",
        "localMemoryPerThread",
        "localMemoryTotal",
    )
    rows = context.read(table, [*_COMMON, *sizes, *names, *memory, "registersPerThread", "launchType"])
    events = NsysEvents.sorted(context, rows, "globalPid", table=table)
    rows = events.rows
    always = np.ones(len(rows), bool)
    clusters = rows.valid("clusterX") & (rows.ints("clusterX") > 0)
    placed = events.placed(context)
    if alone := placed["api"].null_count:
        context.tally.say(
            "info",
            "no-call",
            "kernels whose launch is not in the file: their ranges are unknown",
            alone,
        )
    context.write(
        "kernels",
        {
            **placed,
            "name": encoded(context.database, rows.ints("shortName"), always),
            "demangled": encoded(context.database, rows.ints("demangledName"), always),
            "mangled": encoded(context.database, rows.ints("mangledName"), rows.valid("mangledName")),
            **{
                f"{what}_{axis.lower()}": narrow(rows.ints(f"{what}{axis}"))
                for what in ("grid", "block")
                for axis in _AXES
            },
            **{
                f"cluster_{axis.lower()}": pa.array(narrow(rows.ints(f"cluster{axis}")), mask=~clusters)
                for axis in _AXES
            },
            "registers": narrow(rows.ints("registersPerThread")),
            "static_shared": rows.ints("staticSharedMemory"),
            "dynamic_shared": rows.ints("dynamicSharedMemory"),
            "shared_executed": events.optional("sharedMemoryExecuted"),
            "local_per_thread": events.optional("localMemoryPerThread"),
            "local_total": events.optional("localMemoryTotal"),
            "launch_type": labelled(rows.ints("launchType"), rows.valid("launchType"), labels.LAUNCH_TYPES),
            "graph": events.optional("graphId"),
            "graph_node": events.optional("graphNodeId"),
        },
    )


def copies(context: NsysContext) -> None:
    """Write `memcpys`.

    What nsys lists among them but is a migration of unified memory goes to `um_events`.
    """
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    more = ("bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "copyCount")
    taken = context.read(table, [*_COMMON, *more])
    taken = taken.taken(~np.isin(taken.ints("copyKind"), list(labels.UNIFIED)))
    events = NsysEvents.sorted(context, taken, "globalPid", table=table)
    rows = events.rows
    context.write(
        "memcpys",
        {
            **events.placed(context),
            "bytes": rows.ints("bytes"),
            "kind": labelled(rows.ints("copyKind"), np.ones(len(rows), bool), labels.COPY_KINDS),
            "source_kind": labelled(rows.ints("srcKind"), rows.valid("srcKind"), labels.MEMORY_KINDS),
            "destination_kind": labelled(rows.ints("dstKind"), rows.valid("dstKind"), labels.MEMORY_KINDS),
            "source_device": events.optional_narrow("srcDeviceId"),
            "destination_device": events.optional_narrow("dstDeviceId"),
            "copies": events.optional("copyCount"),
            "graph": events.optional("graphId"),
            "graph_node": events.optional("graphNodeId"),
        },
    )


def memsets(context: NsysContext) -> None:
    """Write `memsets`."""
    table = "CUPTI_ACTIVITY_KIND_MEMSET"
    events = NsysEvents.sorted(
        context, context.read(table, [*_COMMON, "value", "bytes", "memKind"]), "globalPid", table=table
    )
    rows = events.rows
    context.write(
        "memsets",
        {
            **events.placed(context),
            "bytes": rows.ints("bytes"),
            "value": rows.ints("value"),
            "memory_kind": labelled(rows.ints("memKind"), rows.valid("memKind"), labels.MEMORY_KINDS),
            "graph": events.optional("graphId"),
            "graph_node": events.optional("graphNodeId"),
        },
    )


def graphs(context: NsysContext) -> None:
    """Write `graphs`."""
    table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    events = NsysEvents.sorted(
        context, context.read(table, [*_COMMON, "graphExecId"]), "globalPid", table=table
    )
    context.write(
        "graphs",
        {
            **events.placed(context),
            "graph": events.optional("graphId"),
            "graph_exec": events.optional("graphExecId"),
        },
    )
