"""Shared by the stats of the critical path: the graph of the selection, and the notes about it.

The selection is a time or a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.critical_path import Path, build, path
from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData, UsageError
from warplens.model.words import counted
from warplens.report.selection import Selection
from warplens.stats.places import of_process

if TYPE_CHECKING:
    from warplens.report import Report


def find(report: Report, selection: Selection, step: int) -> Path:
    """Return the path of the selection, or of one training step (-1: the whole selection).

    Raises MissingData if there is no CUDA data.
    """
    if step >= 0:
        known = steps(report, selection)
        rows = known.filter(pc.equal(known.column("index"), step))
        if not rows.num_rows:
            raise MissingData(
                f"does not contain training step {step:,}{selection.place(report)}; it has "
                f"{known.num_rows:,}."
            )
        begin, end = pc.min(rows.column("start")).as_py(), pc.max(rows.column("end")).as_py()
        selection = Selection((begin - report.origin, end - report.origin))
    return path(report, build(report, selection))


def path_notes(path: Path) -> list[str]:
    """Return notes about a path."""
    graph = path.graph
    lengths = (
        f"{path.length:,} ns from the first to the last operation: "
        f"{counted(len(graph.calls), 'call')}, {counted(len(graph.work), 'GPU operation')}."
    )
    dead = graph.dag.dead
    broken = (
        f"{dead:,} times an operation began before the end of an operation that it waits for; these "
        "dependencies do not count."
        if dead
        else ""
    )
    launched = graph.calls.find(graph.work.columns["api"])
    lost = int((launched < 0).sum())
    return [
        lengths,
        broken,
        f"{lost:,} operations have no call: their launch is unknown." if lost else "",
    ]


def answer(path: Path, what: str, factor: float) -> str:
    """Return what would be if something took another time, in words.

    UsageError if nothing is called so.
    """
    if factor < 0:
        raise UsageError(f"`:factor={factor:g}` is negative; 0 means no time, 2 twice as long.")
    rows = path.matching(what)
    if not len(rows):
        raise UsageError(
            f"`:what-if={what}` is not a kind, kernel, call or range of the graph; `*` stands for any "
            "text: `:what-if=*gemm*`."
        )
    then = path.what_if(rows, factor)
    return (
        f"If {what} took {factor:g} times as long: {then:,} ns instead of {path.length:,} ns "
        f"({then - path.length:+,} ns)."
    )


def placed(report: Report, rows: pa.Table) -> dict[str, pa.Array]:
    """Return the place of each row, in the columns that have values.

    `Rank`, `PID` where processes differ, `TID` or `Device` and `Stream`.
    """
    columns: dict[str, pa.Array] = {}
    if len(pc.drop_null(pc.unique(rows.column("process")))) > 1:
        ranks = of_process(report, rows.column("process"), "rank")
        columns |= {"Rank": ranks} if ranks.null_count < len(ranks) else {}
        columns["PID"] = of_process(report, rows.column("process"), "pid")
    if "thread" in rows.column_names:
        known = report.table("threads", ["thread", "tid", "name"])
        place = pc.index_in(
            rows.column("thread"), value_set=known.column("thread").combine_chunks()
        ).combine_chunks()
        columns["TID"] = known.column("tid").combine_chunks().take(place)
        columns["Thread"] = known.column("name").combine_chunks().take(place)
    devices = rows.column("device").combine_chunks() if "device" in rows.column_names else None
    if devices is not None and len(pc.drop_null(pc.unique(devices))) > ("stream" not in rows.column_names):
        columns["Device"] = devices
    if "stream" in rows.column_names:
        columns["Stream"] = rows.column("stream").combine_chunks()
    return columns


def numbers_or_null(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Return an array with nulls for -1."""
    return pa.array(values, mask=values == -1)
