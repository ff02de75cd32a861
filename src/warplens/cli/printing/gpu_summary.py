"""Formats GPUs for the summary: busy time, longest kernels, copies, cost of recording."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.gpu.ops import operations
from warplens.analysis.intervals import union
from warplens.cli.printing.tables import printable
from warplens.cli.printing.words import counted, duration, size
from warplens.model.words import percent
from warplens.timeline.names import gpu_label

if TYPE_CHECKING:
    from warplens.report import Report

_MOST_GPUS = 8
_MOST_KERNELS = 5
_ON_GPU = ("kernels", "memcpys", "memsets", "graphs")
# Of the kinds of overhead those that recording causes; the others (compiling, loading, a full queue) the program has without it.
_RECORDING = ("Buffer flush", "Instrumentation", "Resource", "Buffer request")


def busy(report: Report, part: str, wall: int) -> Iterator[tuple[str, str]]:
    """Yield label and text for each GPU that any process of a part used.

    The part is an SQL condition.

    What several processes do on one GPU at a time counts once.
    """
    if not any(report.tables[table] for table in _ON_GPU):
        return
    rows = report.sql(
        f"""SELECT coalesce(d.uuid, o.process || '/' || o.device) AS gpu, o.process, o.device, d.name, o."start", o."end"
            FROM {operations()} o LEFT JOIN devices d ON d.process = o.process AND d.device = o.device
            WHERE {part.replace("process", "o.process")} AND o.device IS NOT NULL ORDER BY gpu, o."start" """
    )
    start, end = (rows.column(name).to_numpy() for name in ("start", "end"))
    changes = np.diff(
        rows.column("gpu").combine_chunks().dictionary_encode().indices.to_numpy(), prepend=-1, append=-1
    )
    gpus = []
    for low, high in pairwise(np.flatnonzero(changes).tolist()):
        first, last = union(start[low:high], end[low:high])
        users = len(rows.column("process").slice(low, high - low).unique())
        gpus.append(
            (
                rows.column("device")[low].as_py(),
                rows.column("name")[low].as_py(),
                users,
                int((last - first).sum()),
            )
        )
    gpus.sort(key=lambda gpu: gpu[0])
    for device, name, users, spent in gpus[:_MOST_GPUS]:
        _, _, known = gpu_label(device, name).partition(": ")
        called = f"{printable(known)}: " if known else ""
        shared = f", by {counted(users, 'process')}" if users > 1 else ""
        yield (
            f"GPU {device}",
            f"{called}busy {duration(spent)}, {_percent(spent / wall) if wall > 0 else '0 %'} of the run{shared}",
        )
    if len(gpus) > _MOST_GPUS:
        yield "", f"and {len(gpus) - _MOST_GPUS} more: warplens stats -r cuda_gpu_sum"


def kernels(report: Report, part: str) -> list[tuple[int, int, str]]:
    """Return total time (ns), number and short name of the kernels of a part that took longest."""
    if not report.tables["kernels"]:
        return []
    rows = report.sql(
        f"""SELECT name, count(*) AS n, sum("end" - "start")::BIGINT AS total FROM kernels WHERE {part}
            GROUP BY name ORDER BY total DESC, name LIMIT {_MOST_KERNELS}"""
    )
    return [(row["total"], row["n"], printable(row["name"])) for row in rows.to_pylist()]


def copies(report: Report, part: str) -> str:
    """Return bytes and rate of copies by direction, e.g. `Host-to-Device 1.5 GiB at 12 GB/s`.

    Empty if there were none.
    """
    if not report.tables["memcpys"]:
        return ""
    rows = report.sql(
        f"""SELECT kind, sum(bytes)::BIGINT AS bytes, sum("end" - "start")::BIGINT AS total FROM memcpys WHERE {part}
            GROUP BY kind ORDER BY total DESC"""
    )
    return ", ".join(_copied(row) for row in rows.to_pylist())


def graphs(report: Report, part: str) -> str:
    """Return how CUDA graphs were recorded, and what that costs or hides.

    Empty if there were none.
    """
    told = []
    if report.tables["kernels"]:
        row = report.sql(
            f"SELECT count(*) AS n, count(DISTINCT (process, graph)) AS of FROM kernels WHERE {part} AND graph IS NOT NULL"
        )
        number, of = (row.column(name)[0].as_py() for name in ("n", "of"))
        if number:
            what = f"{counted(number, 'kernel')} of {counted(of, 'graph')} recorded one by one"
            told.append(f"{what}, which slows each launch: --cuda-graph-trace=graph does not")
    if report.tables["graphs"]:
        number = report.sql(f"SELECT count(*) FROM graphs WHERE {part}").column(0)[0].as_py()
        if number:
            told.append(
                f"{number:,} {'launch' if number == 1 else 'launches'} recorded as a whole: --cuda-graph-trace=node has the kernels"
            )
    return "; ".join(told)


def overhead(report: Report, part: str) -> str:
    """Return how long recording took, by kind; empty if CUPTI did not say.

    What threads of the program do not do does not slow them: flushes are made by threads of the recording and of CUPTI.
    """
    if not report.tables["overhead"]:
        return ""
    rows = report.sql(
        f"""SELECT kind, kind = 'Buffer flush' AND thread IS NULL AS beside, sum("end" - "start")::BIGINT AS total FROM overhead
            WHERE {part} AND kind IN ({", ".join(f"'{kind}'" for kind in _RECORDING)}) GROUP BY ALL ORDER BY beside, total DESC"""
    ).to_pylist()
    told = [
        f"{printable(row['kind'].lower())} {duration(row['total'])}{' beside the program' if row['beside'] else ''}"
        for row in rows
    ]
    return f"of recording: {', '.join(told)}" if told else ""


def _copied(row: dict[str, Any]) -> str:
    rate = f" at {_rate(row['bytes'] / row['total'])}" if row["total"] > 0 else ""
    return f"{printable(row['kind'])} {size(row['bytes'])}{rate}"


def _rate(gigabytes: float) -> str:
    for factor, unit in ((1e-3, "TB/s"), (1, "GB/s"), (1e3, "MB/s")):
        if gigabytes * factor >= 0.9995:
            return f"{gigabytes * factor:.3g} {unit}"
    return f"{gigabytes * 1e6:.3g} kB/s"


def _percent(share: float) -> str:
    return "under 0.1 %" if 0 < share < 0.001 else percent(share, 1)
