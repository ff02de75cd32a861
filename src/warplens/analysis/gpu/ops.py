"""One SQL relation of all GPU operations, each with the name that stats use.

Kernels, copies, memsets and graphs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from warplens.analysis.gpu.work import gpus
from warplens.analysis.intervals import covered
from warplens.report.quoting import quoted
from warplens.report.selection import overlap

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

Naming = Literal["demangled", "base", "mangled"]

KERNEL, MEMORY, GRAPH = "CUDA_KERNEL", "MEMORY_OPER", "CUDA_GRAPH"
# How unified memory's migrations are called among the copies.
MIGRATIONS = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device"}
_NAMES = {"demangled": "demangled", "base": "name", "mangled": "coalesce(mangled, demangled)"}
_RAN = 'id, process, device, context, stream, "start", "end", api, correlation'
_NODE = f"{_RAN}, captured"  # of work that may be a node of a graph
_DETAILS = {
    "kernels": f"{', '.join(f'{what}_{axis}' for what in ('grid', 'block') for axis in 'xyz')}, registers, static_shared, dynamic_shared",
    "memcpys": "source_kind, destination_kind",
    "memsets": "memory_kind AS destination_kind",
}


def at(report: Report, selection: Selection) -> str:
    """Return the SQL condition for rows that are instants and lie in the selection."""
    window = selection.window(report)
    return "true" if window is None else f'"start" >= {window[0]} AND "start" < {window[1]}'


def kernels(naming: Naming = "demangled", nvtx: bool = False) -> str:
    """Return the SQL relation (in parentheses) of the kernels with the column `operation`: the chosen name.

    `nvtx`: the name comes after that of the innermost push/pop range around the launch and a slash, e.g. `train:step/gemm`. Kernels of a
    graph have the range around their capture.
    """
    if not nvtx:
        return f"(SELECT *, {_NAMES[naming]} AS operation FROM kernels)"
    around = "CASE WHEN r.id IS NULL THEN '' ELSE coalesce(r.domain, '') || ':' || coalesce(r.message, '') || '/' END"
    ranges = 'LEFT JOIN cuda_api a ON coalesce(k.captured, k.api) = a.id LEFT JOIN nvtx_ranges r ON a."range" = r.id'
    return f"(SELECT k.* EXCLUDE operation, {around} || k.operation AS operation FROM {kernels(naming)} k {ranges})"


def during(report: Report, selection: Selection, of: str = "") -> str:
    """Return the SQL condition for rows that overlap the selection; they keep their whole length.

    `of`: `table.`, where needed.
    """
    window = selection.window(report)
    return "true" if window is None else overlap(*window, of)


def operations(
    naming: Naming = "demangled",
    nvtx: bool = False,
    *,
    categories: Iterable[str] = (KERNEL, MEMORY, GRAPH),
    details: bool = False,
) -> str:
    """Return the SQL relation (in parentheses) of what GPUs did.

    Columns: id (unique in its table), process, device, context, stream (null for migrations of unified memory), start, end, api,
    correlation, captured (null but for nodes of graphs), bytes (null but for copies and memsets), category (`CUDA_KERNEL`, `MEMORY_OPER`,
    `CUDA_GRAPH`), operation (a kernel's name as `kernels` gives it, `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`, `[CUDA graph 3]`).
    `details`: also grid_x … block_z, registers, static_shared, dynamic_shared, source_kind, destination_kind; all categories are needed.
    """
    more = {table: f", {columns}" if details else "" for table, columns in _DETAILS.items()}
    selects = {
        KERNEL: [
            f"SELECT {_NODE}{more['kernels']}, NULL::BIGINT AS bytes, '{KERNEL}' AS category, operation FROM {kernels(naming, nvtx)}"
        ],
        MEMORY: [
            f"SELECT {_NODE}{more['memcpys']}, bytes, '{MEMORY}' AS category, '[CUDA memcpy ' || kind || ']' AS operation FROM memcpys",
            f"SELECT {_NODE}{more['memsets']}, bytes, '{MEMORY}' AS category, '[CUDA memset]' AS operation FROM memsets",
            f"""SELECT id, process, device, "start", "end", bytes, '{MEMORY}' AS category, {_migration()} AS operation
                FROM um_events WHERE kind IN ({", ".join(map(quoted, MIGRATIONS))})""",
        ],
        GRAPH: [
            f"SELECT {_RAN}, '{GRAPH}' AS category, '[CUDA graph' || coalesce(' ' || graph, '') || ']' AS operation FROM graphs"
        ],
    }
    return (
        f"({' UNION ALL BY NAME '.join(select for category in categories for select in selects[category])})"
    )


def busy(report: Report, selection: Selection) -> pa.Table:
    """Return the busy time of each GPU.

    Columns: process, device, operations, busy, first, last (ns, the report's clock).

    `busy` is the union: overlapping work counts once. What reaches over an edge of the selection counts with the piece inside.
    """
    rows = []
    for gpu in gpus(report, selection, classes=False):
        track = gpu.together()
        spent = {
            "busy": covered(track.start, track.end),
            "first": int(track.start.min()),
            "last": int(track.end.max()),
        }
        rows.append({"process": gpu.process, "device": gpu.device, "operations": len(track), **spent})
    names = ("process", "device", "operations", "busy", "first", "last")
    return pa.Table.from_pylist(
        rows, pa.schema([(name, pa.int32() if name == "device" else pa.int64()) for name in names])
    )


def _migration() -> str:
    names = " ".join(f"WHEN {quoted(kind)} THEN {quoted(name)}" for kind, name in MIGRATIONS.items())
    return f"'[CUDA memcpy Unified ' || CASE kind {names} END || ']'"
