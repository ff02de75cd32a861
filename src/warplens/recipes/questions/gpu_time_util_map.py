"""GPU utilization of each rank over time, as a heat map.

## What it asks
The share of time, in percent, in which each GPU of each rank worked, for each of `:bins=60` equal
stretches of time. `:kind=compute`, `communication` or `memory` counts only that kind of work.

## How it is computed
Work that overlaps on one GPU counts once. If the reports overlap in time, their clocks are used, so
that one column is the same moment on all ranks. Otherwise times count from the start of each
report.

## Traps
Clocks of different hosts may differ by milliseconds: `straggler` shows by how much. A bin is the
whole time divided by the number of bins, so short gaps do not show; `gpu_idle_trace` lists them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu import kernel_classes
from warplens.analysis.intervals import Cover
from warplens.arrays import Float64Array
from warplens.errors import MissingData, UsageError
from warplens.model.words import counted, duration
from warplens.recipes import ranks
from warplens.recipes.base import Answer, Summary
from warplens.report import Report

_KINDS = ("all", "compute", "communication", "memory")
_SHADES = " ░▒▓█"
_STRETCHES = 4096  # of one GPU that cross to the answer: enough for any screen
_MOST = 32  # rows that are drawn


def part(report: Report, *, kind: str = "all", bins: int = 60) -> Summary:
    """Return when the GPUs of one report worked.

    Args:
        report: report of one rank.
        kind: all, compute, communication or memory.
        bins: number of equal stretches of time.
    """
    if kind not in _KINDS:
        raise UsageError(f"`:kind={kind}` is unknown; choose from: {', '.join(_KINDS)}.")
    if not 1 <= bins <= 1000:
        raise UsageError(f"`:bins={bins}`: 1 to 1000 pieces of time.")
    work = _work(report, kind)
    facts = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "host"]).to_pylist()
    }
    rows = []
    begin, end = report.span
    for process, device in sorted(
        set(zip(*(work.column(name).to_pylist() for name in ("process", "device")), strict=True))
    ):
        own = work.filter(
            pc.and_(pc.equal(work.column("process"), process), pc.equal(work.column("device"), device))
        )
        cover = Cover(own.column("start").to_numpy(), own.column("end").to_numpy())
        edges = np.linspace(begin, end, _STRETCHES + 1).astype(np.int64)
        rows.append(
            {
                "process": process,
                "device": device,
                "rank": facts[process]["rank"],
                "host": facts[process]["host"],
                "begin": begin,
                "end": end,
                "busy": cover.within(edges[:-1], edges[1:]).tolist(),
            }
        )
    if not rows:
        raise MissingData("does not contain GPU work of this kind.")
    schema = pa.schema(
        [
            *((name, pa.int64()) for name in ("process", "device", "rank")),
            ("host", pa.string()),
            *((name, pa.int64()) for name in ("begin", "end")),
            ("busy", pa.list_(pa.int64())),
        ]
    )
    return {"gpus": pa.Table.from_pylist(rows, schema=schema)}


def answer(summary: Summary, *, kind: str = "all", bins: int = 60) -> Answer:
    """Draw the heat map, with a row for each GPU."""
    rows = summary["gpus"]
    number, names, _ = ranks.names_of(rows)
    rows = rows.take(pa.array(np.argsort(number, kind="stable")))
    begins, ends = rows.column("begin").to_numpy(), rows.column("end").to_numpy()
    together = begins.max() < ends.min()
    low, high = (begins.min(), ends.max()) if together else (0, int((ends - begins).max()))
    edges = np.linspace(low, high, bins + 1)
    table: Float64Array = np.stack(
        [
            _binned(
                np.asarray(row["busy"], np.float64),
                row["begin"] if together else 0,
                row["end"] if together else row["end"] - row["begin"],
                edges=edges,
            )
            for row in rows.to_pylist()
        ]
    )
    mean = table.mean(axis=1)
    lines = [
        f"{kind.capitalize()} GPU work of {counted(len(names), 'rank')}, {counted(bins, 'piece')} of {duration(edges[1] - edges[0])}; "
        f"mean {mean.mean():.0f} % (least {names[int(mean.argmin())]}: {mean.min():.0f} %).",
        *(
            f"{name:>10} │{_drawn(row)}│ {share:3.0f} %"
            for name, row, share in zip(names[:_MOST], table, mean, strict=False)
        ),
    ]
    if len(names) > _MOST:
        lines.append(f"… and {counted(len(names) - _MOST, 'more rank')}; -f csv -o NAME writes all.")
    begin = (edges[:-1] - low).astype(np.int64)
    return Answer(
        lines,
        details={
            "map": pa.table(
                {
                    "Rank": [name for name in names for _ in range(bins)],
                    "Begin (ns)": np.tile(begin, len(names)),
                    "Busy (%)": table.ravel(),
                }
            )
        },
        facts={"kind": kind, "bins": bins, "same_time": bool(together), "mean_percent": float(mean.mean())},
    )


def _work(report: Report, kind: str) -> pa.Table:
    columns = ["process", "device", "start", "end"]
    kernels = report.table("kernels", [*columns, "name"])
    communicates = pc.equal(kernel_classes.classes(kernels.column("name")).cast(pa.string()), "communication")
    parts = []
    if kind in ("all", "compute"):
        parts.append(kernels.filter(pc.invert(communicates)).select(columns))
    if kind in ("all", "communication"):
        parts.append(kernels.filter(communicates).select(columns))
    if kind in ("all", "memory"):
        parts += [report.table(name, columns) for name in ("memcpys", "memsets")]
    return pa.concat_tables(parts, promote_options="permissive").drop_null()


def _binned(busy: Float64Array, begin: int, end: int, edges: Float64Array) -> Float64Array:
    """Return the percentage of each bin that was busy; `busy`: ns in equal stretches from `begin` to `end`."""
    total = np.concatenate([[0.0], np.cumsum(busy)])
    at = np.interp(edges, np.linspace(begin, end, len(busy) + 1), total)
    share: Float64Array = 100 * np.diff(at) / np.diff(edges)
    return share


def _drawn(row: Float64Array) -> str:
    steps = np.clip(np.ceil(row / 100 * (len(_SHADES) - 1) - 1e-9), 0, len(_SHADES) - 1).astype(int)
    return "".join(_SHADES[step] for step in steps.tolist())
