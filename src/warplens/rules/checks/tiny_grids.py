"""Long kernels with a grid so small that most of the GPU is idle.

## What it looks for
Kernels of at least 50 us whose grid has blocks for less than a tenth of the GPU's multiprocessors,
for example `<<<1, 1>>>`. Time in which another kernel ran beside them does not count. Communication
kernels do not count, because they use few multiprocessors on purpose.

## Why it costs time
A block runs on one multiprocessor. A grid of one block leaves the other 131 of an H100 idle, and a
block of one thread also leaves 31 of the 32 lanes of its warp idle. The GPU counts as busy all the
time: utilization is 100 %.

## What to do
Launch at least one block per multiprocessor, with 128 threads or more each: a grid-stride loop,
partial sums that are added up afterwards (CUB, Thrust, `torch.sum`), one block per row instead of
one for all. If a library's kernel has the small grid, give it more work at once: a larger batch, or
several of them side by side in other streams.

## When it does not apply
If each element depends on the one before, as in a recurrence, so that the work cannot be divided.
If the kernel waits for something, as a persistent server does. The estimate assumes that additional
blocks run as fast as the present ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.kernel_classes import class_of
from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.gpus import gpus, span
from warplens.rules.hosts import edges, numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#thread-and-block-heuristics"
_BLOCKS = "grid_x::BIGINT * grid_y * grid_z"


def check(
    report: Report,
    selection: Selection,
    *,
    rows: int = 50,
    below: float = 10,
    longest: float = 50,
    least: float = 1,
) -> list[Finding]:
    """Return a finding for each kernel that does so.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of launches kept as evidence.
        below: percent of the multiprocessors below which a grid counts as small.
        longest: us; kernels up to this length do not count.
        least: percent of the judged time that the launches of one kernel must take by themselves.
    """
    gpus(report, selection)
    devices = report.table("devices", ["process", "device", "multiprocessors"]).to_pylist()
    known = {
        (row["process"], row["device"]): row["multiprocessors"] for row in devices if row["multiprocessors"]
    }
    if not known:
        raise MissingData("does not contain the number of multiprocessors of its GPUs.")
    whole = span(report, selection)
    begin, end = edges(report, selection)
    findings = []
    for (process, device), processors in sorted(known.items()):
        on = f"process = {process} AND device = {device} AND {during(report, selection)}"
        # no grid has no blocks: recorders write 0 where they do not know it, as of kernels in graphs
        few = f"{_BLOCKS} > 0 AND {_BLOCKS} * 100 < {below} * {processors}"
        limit = f'{few} AND "end" - "start" >= {round(longest * 1000)}'
        names = (
            report.sql(f"SELECT DISTINCT demangled::VARCHAR FROM kernels WHERE {on} AND {limit} ORDER BY ALL")
            .column(0)
            .to_pylist()
        )
        kinds = [name for name in names if class_of(name) != "communication"]
        if not kinds:
            continue
        columns = f'id, "start", "end", name::VARCHAR AS name, {_BLOCKS} AS blocks, block_x::BIGINT * block_y * block_z AS threads'
        others = _others(report, on, limit)
        for kind in kinds:
            own = report.sql(
                f'SELECT {columns} FROM kernels WHERE {on} AND {limit} AND demangled = {quoted(kind)} ORDER BY "start"'
            )
            first, last = np.maximum(numbers(own, "start"), begin), np.minimum(numbers(own, "end"), end)
            alone = Cover(first, last).without(others)
            if alone.total * 100 < least * whole:
                continue
            # what would be left of each launch if its work were on all multiprocessors alike
            spread = numbers(own, "blocks") / processors
            won = int((alone.within(first, last) * (1 - spread)).sum())
            findings.append(
                _finding(
                    own,
                    alone,
                    min(won, alone.total),
                    whole=whole,
                    processors=processors,
                    process=process,
                    device=device,
                    rows=rows,
                )
            )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _others(report: Report, on: str, limit: str) -> Cover:
    """Return when kernels with a larger or an unknown grid, or short ones, and whole graphs ran."""
    where = {"kernels": f"{on} AND NOT coalesce({limit}, false)", "graphs": on}
    parts = [
        report.sql(f'SELECT "start", "end" FROM {table} WHERE {condition}')
        for table, condition in where.items()
    ]
    return Cover(*(np.concatenate([numbers(part, edge) for part in parts]) for edge in ("start", "end")))


def _finding(
    own: pa.Table, alone: Cover, won: int, whole: int, processors: int, process: int, device: int, rows: int
) -> Finding:
    row = own.take(np.argsort(numbers(own, "start") - numbers(own, "end"), kind="stable")[:1]).to_pylist()[0]
    evidence = (
        Evidence(
            table="kernels",
            id=each["id"],
            start=each["start"],
            end=each["end"],
            text=f"{each['name']} on {_shape(each)}",
            process=process,
            thread=None,
            device=device,
            values=values,
        )
        for each in own.to_pylist()
        for values in ({"blocks": each["blocks"], "threads": each["threads"], "multiprocessors": processors},)
    )
    return Finding(
        rule="tiny_grids",
        subject=row["name"],
        title=f"{row['name']} ran for {duration(alone.total)} on {_shape(row)}, while the rest of the "
        "GPU was idle",
        cause=f"{counted(own.num_rows, 'launch')} took {percent(alone.total / whole, 1)} of the time, with no other kernel beside: "
        f"{processors - row['blocks']} of the {processors} multiprocessors were idle. With its work "
        f"spread over all of them the kernel would take {duration(alone.total - won)}.",
        fix="Divide the work among more blocks and threads (a grid-stride loop, partial sums, one block for each row), or give the kernel "
        "more at once.",
        evidence=most(evidence, rows),
        occurrences=own.num_rows,
        bound=alone.total,
        estimate=won,
        confidence="medium",
        claim=alone,
    )


def _shape(row: dict[str, int]) -> str:
    return f"{counted(row['blocks'], 'block')} of {counted(row['threads'], 'thread')}"
