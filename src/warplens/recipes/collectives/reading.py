"""The collectives of one report, and what its GPU did before each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu import idle, kernel_classes
from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.report import Report, Selection

BEFORE = "before: "  # begins the name of a column: ns of a cause since the collective before
WORK = "GPU work"  # the cause of time in which kernels ran that are no communication
HOST = "no GPU recorded"  # the cause of all time, where no kernel was recorded
_NCCL = re.compile(r"nccl\w*?Kernel_([A-Za-z]+)")


def collectives(report: Report) -> pa.Table:
    """Return one row for each collective, in order of start within its rank.

    Columns: rank (null where it is not known), host, process, device (null without a GPU), name, group, sequence
    (null without one), start and end (ns, on the report's clock), and `before: CAUSE` for each cause: how many
    ns of it lie between the end of the rank's collective before and this start. Where no framework recorded
    collectives, kernels of communication stand for them. MissingData if there are none, either.
    """
    rows = _recorded(report) if report.tables["collectives"] else _kernels_of_communication(report)
    if not rows.num_rows:
        raise MissingData("contains neither collectives nor NCCL kernels.")
    facts = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "host"]).to_pylist()
    }
    causes = list(_causes(report))
    parts = []
    for process, device in sorted(
        set(zip(rows.column("process").to_pylist(), rows.column("device").to_pylist(), strict=True)),
        key=lambda key: (key[0], -1 if key[1] is None else key[1]),
    ):
        same = pc.equal(rows.column("process"), process)
        own = rows.filter(
            pc.and_(
                same,
                pc.is_null(rows.column("device"))
                if device is None
                else pc.equal(rows.column("device"), device),
            )
        )
        start, end = own.column("start").to_numpy(), own.column("end").to_numpy()
        # When everything before each collective had ended, at the latest when it began itself
        # (collectives may overlap). The first has nothing before it.
        ended = np.minimum(np.append(start[:1], np.maximum.accumulate(end)[:-1]), start)
        since = {
            f"{BEFORE}{cause}": cover.within(ended, start)
            for cause, place, cover in causes
            if place[0] == process and device in (None, place[1])
        } or {f"{BEFORE}{HOST}": start - ended}
        fact = facts[process]
        columns = own.select(["process", "device", "name", "group", "sequence", "start", "end"])
        for name, values in since.items():
            columns = columns.append_column(name, pa.array(values, pa.int64()))
        columns = columns.append_column("rank", pa.repeat(pa.scalar(fact["rank"], pa.int64()), len(start)))
        parts.append(
            columns.append_column("host", pa.repeat(pa.scalar(fact["host"], pa.string()), len(start)))
        )
    return pa.concat_tables(parts, promote_options="default")


def _recorded(report: Report) -> pa.Table:
    return report.sql(
        """SELECT c.process, k.device, c.name::VARCHAR AS name, coalesce(c."group"::VARCHAR, '') AS "group", c.sequence, c.start, c."end"
           FROM collectives c LEFT JOIN kernels k ON k.process = c.process AND k.id = c.kernel ORDER BY c.start"""
    )


def _kernels_of_communication(report: Report) -> pa.Table:
    rows = report.sql(
        'SELECT process, device, name::VARCHAR AS name, start, "end" FROM kernels ORDER BY start'
    )
    rows = rows.filter(pc.invert(_computes(rows.column("name"))))
    names = pa.array([_operation(name) for name in rows.column("name").to_pylist()], pa.string())
    rows = rows.set_column(rows.column_names.index("name"), "name", names)
    rows = rows.append_column("group", pa.repeat("", rows.num_rows))
    return rows.append_column("sequence", pa.nulls(rows.num_rows, pa.int64()))


def _operation(kernel: str) -> str:
    """Return `AllReduce` for `ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)`; the kernel's name for others."""
    match = _NCCL.match(kernel)
    return match[1] if match else kernel.partition("(")[0]


def _causes(report: Report) -> Iterator[tuple[str, tuple[int, int], Cover]]:
    """Yield the times in which a GPU of a process worked, and those in which it was idle, by cause."""
    work = report.table("kernels", ["process", "device", "start", "end", "name"])
    if not work.num_rows:
        return
    work = work.filter(_computes(work.column("name")))
    yield from ((WORK, place, cover) for place, cover in _covers(work))
    try:
        gaps = idle.idle(report, Selection())
    except MissingData:
        return
    for cause in pc.unique(gaps.column("cause")).to_pylist():
        chosen = gaps.filter(pc.equal(gaps.column("cause").cast(pa.string()), cause))
        yield from ((cause, place, cover) for place, cover in _covers(chosen))


def _computes(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.not_equal(kernel_classes.classes(names), "communication")


def _covers(rows: pa.Table) -> Iterator[tuple[tuple[int, int], Cover]]:
    process, device, start, end = (
        rows.column(name).to_numpy() for name in ("process", "device", "start", "end")
    )
    for place in sorted(set(zip(process.tolist(), device.tolist(), strict=True))):
        own = (process == place[0]) & (device == place[1])
        yield place, Cover(start[own], end[own])
