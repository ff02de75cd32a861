"""The collectives of one report, and what its GPU did before each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu import idle, kernel_classes
from warplens.analysis.intervals import Cover
from warplens.analysis.steps.names import part_of
from warplens.errors import MissingData
from warplens.recipes import steps
from warplens.report import Report, Selection

BEFORE = "before: "  # begins the name of a column: ns of a cause since the collective before
WORK = "GPU work"  # the cause of time in which kernels ran that are no communication
HOST = "other work of the host"  # the cause of the time that no phase explains, without GPU work
GARBAGE = "garbage collection"
PHASES = ("data", "forward", "backward", "optimizer")  # causes of processes without GPU work
# What PyTorch calls the operations of its process groups that run on the host.
OPERATORS = re.compile(r"(?:gloo|mpi|ucc):(\w+)")
_NCCL = re.compile(r"nccl\w*?Kernel_([A-Za-z]+)")


def collectives(report: Report) -> pa.Table:
    """Return one row for each collective, in order of start within its rank.

    Columns: rank (null where it is not known), host, process, device (null without a GPU), name, group, sequence
    (null without one), in_step (whether a step called it), step (number in the name of that step, null without
    one), start and end (ns, on the report's clock), and `before: CAUSE` for each cause: how many
    ns of it lie between the end of the rank's collective before and this start. Where no framework recorded
    collectives, kernels of communication stand for them. MissingData if there are none, either.
    """
    rows = _recorded(report) if report.tables["collectives"] else _kernels_of_communication(report)
    if not rows.num_rows:
        rows = _operators_of_communication(report)
    if not rows.num_rows:
        raise MissingData("contains neither collectives nor NCCL kernels nor operators of Gloo.")
    facts = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "host"]).to_pylist()
    }
    in_step, step = steps.at_times(report, rows.column("process"), rows.column("called"))
    rows = rows.append_column("in_step", in_step).append_column("step", step)
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
        }
        if not any(place[0] == process and place[1] is not None for _, place, _ in causes):
            named = sum(since.values(), np.zeros(len(start), np.int64))
            since[f"{BEFORE}{HOST}"] = np.maximum(start - ended - named, 0)
        fact = facts[process]
        columns = own.select(
            ["process", "device", "name", "group", "sequence", "in_step", "step", "start", "end"]
        )
        for name, values in since.items():
            columns = columns.append_column(name, pa.array(values, pa.int64()))
        columns = columns.append_column("rank", pa.repeat(pa.scalar(fact["rank"], pa.int64()), len(start)))
        parts.append(
            columns.append_column("host", pa.repeat(pa.scalar(fact["host"], pa.string()), len(start)))
        )
    return pa.concat_tables(parts, promote_options="default")


def _recorded(report: Report) -> pa.Table:
    return report.sql(
        """SELECT c.process, k.device, c.name::VARCHAR AS name, coalesce(c."group"::VARCHAR, '') AS "group", c.sequence, c.start, c."end",
                  coalesce(r.start, a.start, c.start) AS called
           FROM collectives c LEFT JOIN kernels k ON k.process = c.process AND k.id = c.kernel
           LEFT JOIN nvtx_ranges r ON r.id = c.range LEFT JOIN cuda_api a ON a.id = k.api ORDER BY c.start"""
    )


def _kernels_of_communication(report: Report) -> pa.Table:
    rows = report.sql(
        """SELECT k.process, k.device, k.name::VARCHAR AS name, k.start, k."end", coalesce(a.start, k.start) AS called
           FROM kernels k LEFT JOIN cuda_api a ON a.id = k.api ORDER BY k.start"""
    )
    rows = rows.filter(pc.invert(_computes(rows.column("name"))))
    names = pa.array([_operation(name) for name in rows.column("name").to_pylist()], pa.string())
    rows = rows.set_column(rows.column_names.index("name"), "name", names)
    rows = rows.append_column("group", pa.repeat("", rows.num_rows))
    return rows.append_column("sequence", pa.nulls(rows.num_rows, pa.int64()))


def _operators_of_communication(report: Report) -> pa.Table:
    """Return the operations of process groups on the host: from their start until their data has arrived."""
    rows = report.sql(
        """SELECT process, message::VARCHAR AS name, start, "end", start AS called FROM nvtx_ranges
           WHERE domain = 'pytorch' AND regexp_full_match(message, $pattern) ORDER BY start""",
        {"pattern": OPERATORS.pattern},
    )
    names = [name.partition(":")[2] for name in rows.column("name").to_pylist()]
    rows = rows.set_column(1, "name", pa.array(names, pa.string()))
    rows = rows.append_column("group", pa.repeat("", rows.num_rows))
    for name in ("device", "sequence"):
        rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int64()))
    return rows


def _operation(kernel: str) -> str:
    """Return `AllReduce` for `ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)`; the kernel's name for others."""
    match = _NCCL.match(kernel)
    return match[1] if match else kernel.partition("(")[0]


def _causes(report: Report) -> Iterator[tuple[str, tuple[int, int | None], Cover]]:
    """Yield the times in which a GPU of a process worked, and those in which it was idle, by cause.

    Without GPU work: the times of the phases of the process, by their names, and of garbage collection.
    """
    work = report.table("kernels", ["process", "device", "start", "end", "name"])
    if not work.num_rows:
        yield from _phases(report)
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


def _phases(report: Report) -> Iterator[tuple[str, tuple[int, int | None], Cover]]:
    names = report.sql(
        "SELECT DISTINCT message::VARCHAR AS message FROM nvtx_ranges WHERE message IS NOT NULL"
    )
    known = {name: phase for name in names.column(0).to_pylist() if (phase := part_of(name)) in PHASES}
    rows = report.sql(
        """SELECT process, message::VARCHAR AS message, start, "end" FROM nvtx_ranges
           WHERE message IN (SELECT unnest($names)) ORDER BY start""",
        {"names": [*known, ""]},
    )
    phases = np.array([known[name] for name in rows.column("message").to_pylist()], object)
    process, start, end = (rows.column(name).to_numpy() for name in ("process", "start", "end"))
    for one in np.unique(process).tolist():
        for phase in PHASES:
            own = (process == one) & (phases == phase)
            if own.any():
                yield phase, (one, None), Cover(start[own], end[own])
    collections = report.table("gc", ["process", "start", "end"])
    process, start, end = (collections.column(name).to_numpy() for name in ("process", "start", "end"))
    for one in np.unique(process).tolist():
        own = process == one
        yield GARBAGE, (one, None), Cover(start[own], end[own])


def _computes(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.not_equal(kernel_classes.classes(names), "communication")


def _covers(rows: pa.Table) -> Iterator[tuple[tuple[int, int], Cover]]:
    process, device, start, end = (
        rows.column(name).to_numpy() for name in ("process", "device", "start", "end")
    )
    for place in sorted(set(zip(process.tolist(), device.tolist(), strict=True))):
        own = (process == place[0]) & (device == place[1])
        yield place, Cover(start[own], end[own])
