"""Shared by rules about the host: the relevant threads, selected rows of a table, idle time of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover, gaps
from warplens.analysis.once import once
from warplens.analysis.steps.leading import leading
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.rules.gpus import gpus

if TYPE_CHECKING:
    from warplens.report import Report, Selection

__all__ = [
    "EMPTY",
    "capital",
    "ceiling",
    "cut",
    "edges",
    "idle",
    "leading",
    "needed",
    "numbers",
    "rows",
    "threads",
]
EMPTY = Cover([], [])


def needed(report: Report, selection: Selection, table: str, what: str, source: str | None = None) -> None:
    """Raise MissingData if a table is empty, unless `source` was on: then there was nothing to record."""
    on = source is not None and any(
        manifest.sources.get(source, {}).get("on") for manifest in report.manifests
    )
    if not on and not report.tables[table]:
        raise MissingData(f"does not contain {what}{selection.place(report)}.")


def edges(report: Report, selection: Selection) -> tuple[int, int]:
    """Return begin and end of the time that is looked at, ns."""
    return selection.window(report) or report.span


def cut(
    report: Report, selection: Selection, start: Int64Array, end: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return times cut to what is looked at."""
    begin, finish = edges(report, selection)
    return np.clip(start, begin, finish), np.clip(end, begin, finish)


def rows(report: Report, selection: Selection, columns: str, table: str, where: str = "true") -> pa.Table:
    """Return columns of the rows of a table that overlap the selection, by start.

    Start and end are cut to it.
    """
    taken = report.sql(
        f'SELECT "start", "end", {columns} FROM {table} WHERE ({where}) AND {during(report, selection)} ORDER BY "start"'
    )
    window = selection.window(report)
    if window is None:
        return taken
    begin, end = cut(report, selection, start=numbers(taken, "start"), end=numbers(taken, "end"))
    return taken.set_column(0, "start", pa.array(begin)).set_column(
        1, "end", pa.array(np.maximum(begin, end))
    )


def numbers(table: pa.Table, name: str) -> Int64Array:
    """Return a column of integers; -1 stands for null."""
    column = table.column(name)
    if column.null_count:
        import pyarrow.compute as pc

        column = pc.fill_null(column, -1)
    return np.asarray(column.to_numpy(), np.int64)


def idle(report: Report, selection: Selection, *, whole: bool = False) -> Cover | None:
    """Return when some GPU had nothing to do between its first and its last operation.

    None if the report knows no GPU.

    `whole`: also before the first and behind the last.
    """
    try:
        devices = gpus(report, selection)
    except MissingData:
        return None
    begin, end = edges(report, selection)
    parts = [
        gaps(gpu.busy.start, gpu.busy.end, *((begin, end) if whole else (gpu.begin, gpu.finish)))
        for gpu in devices
    ]
    return Cover(np.concatenate([first for first, _ in parts]), np.concatenate([last for _, last in parts]))


def ceiling(report: Report, selection: Selection, host: Cover) -> int:
    """Return the bound, ns, if the host saves the time in `host`.

    No more than GPUs had nothing to do.
    """
    gpu = idle(report, selection, whole=True)
    return host.total if gpu is None else min(host.total, gpu.total)


def capital(text: str) -> str:
    """Return a text as a sentence begins with it."""
    return text[:1].upper() + text[1:]


@once
def threads(report: Report) -> dict[int, str]:
    """Return what threads are called, in words that are the same in the next recording."""
    named = report.sql(
        "SELECT t.thread, t.name, t.tid = p.pid AS main FROM threads t JOIN processes p USING (process)"
    ).to_pylist()
    return {
        row["thread"]: "the main thread"
        if row["main"]
        else f"thread {row['name']}"
        if row["name"]
        else "a thread"
        for row in named
    }


def threads_of_processes(report: Report) -> dict[int, str]:
    """Return the names of threads with their processes.

    `the main thread of train.py (rank 1, process 4711)`.
    """
    facts = {
        row["process"]: row
        for row in report.sql("SELECT process, pid, rank, name FROM processes").to_pylist()
    }
    of_thread = report.sql("SELECT thread, process FROM threads").to_pylist()
    names = threads(report)
    texts = {}
    for row in of_thread:
        process = facts.get(row["process"])
        if process is None:
            texts[row["thread"]] = names.get(row["thread"], "a thread")
            continue
        number = f"process {process['pid']}"
        where = ", ".join(
            [f"rank {process['rank']}"] * (process["rank"] is not None)
            + [number] * (process["name"] is not None)
        )
        called = process["name"] or number
        texts[row["thread"]] = (
            f"{names.get(row['thread'], 'a thread')} of {called}{f' ({where})' if where else ''}"
        )
    return texts
