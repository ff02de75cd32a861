"""Formats the CPU side for the summary: hot functions, OS calls, Python's collector and its lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from warplens.cli.printing.tables import printable
from warplens.cli.printing.words import counted, duration
from warplens.model.words import percent
from warplens.report.columns import coded

if TYPE_CHECKING:
    from warplens.report import Report

_MOST = 3
_LEAST = 0.01  # share of the run below which collections are not worth a line
# What is counted: the rows of which table, or what of them; silent if there is none.
COUNTS = {
    "Python samples": ("samples", "sum(count) FILTER (kind = 'python')"),
    "native samples": ("samples", "sum(count) FILTER (kind = 'native')"),
    "asyncio tasks": ("task_samples", "count(DISTINCT (process, number))"),
    "OS calls": ("osrt", ""),
    "thread states": ("thread_states", ""),
    "GIL holds": ("gil", "sum(holds)"),
    "collections": ("gc", ""),
    "imports": ("imports", ""),
    "Python calls": ("python_calls", ""),
}


def noun(name: str) -> str:
    """Return the singular of what is counted."""
    return name.removesuffix("s")


def lines(
    report: Report, processes: tuple[int, int], wall: int, *, hottest: bool
) -> Iterator[tuple[str, str]]:
    """Yield labels and texts about the processes with keys from one to another in `wall` ns.

    `hottest`: also what ran most.
    """
    part = f"process BETWEEN {processes[0]} AND {processes[1]}"
    if hottest:
        yield from _hot(report, processes)
    texts = {
        "OS calls": _calls(report, part) if report.tables["osrt"] else "",
        "GC": _collections(report, processes, wall) if report.tables["gc"] else "",
        "GIL": _lock(report, part) if report.tables["gil"] else "",
    }
    yield from ((label, text) for label, text in texts.items() if text)


def _hot(report: Report, processes: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Functions that ran most: native samples, which have Python frames in them, say it best.

    Without SQL: to load DuckDB takes longer than a short run.
    """
    if not report.tables["samples"]:
        return
    rows = report.table("samples", ["process", "kind", "on_cpu", "stack", "weight"])
    process, weight = (np.asarray(rows[name].to_numpy(), np.int64) for name in ("process", "weight"))
    stack = np.nan_to_num(rows["stack"].to_numpy(), nan=-1).astype(np.int64)
    kinds, kind = coded(rows["kind"])
    ran = np.asarray(rows["on_cpu"].to_numpy(zero_copy_only=False), bool) & (stack >= 0)
    ran &= (process >= processes[0]) & (process <= processes[1])
    if not ran.any():
        return
    best = min({kinds[code] for code in np.unique(kind[ran], return_counts=True)[0].tolist()})
    ran &= kind == kinds.index(best)
    stacks, code = np.unique(stack[ran], return_inverse=True)
    frames = report.table("frames", ["frame", "function"])
    keys = np.asarray(frames["frame"].to_numpy(), np.int64)
    order = np.argsort(keys, kind="stable")
    at = order[np.searchsorted(keys, stacks, sorter=order)]
    names, name = coded(frames["function"])
    sums: Counter[str] = Counter()
    for function, spent in zip(
        name[at].tolist(), np.bincount(code, weight[ran], len(stacks)).tolist(), strict=True
    ):
        sums[names[function]] += spent
    whole = sums.total()
    hot = [
        f"{percent(spent / whole)} {printable(name)}"
        for name, spent in sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
        if whole
    ]
    if hot:
        yield "Hottest", ", ".join(hot)


def _calls(report: Report, part: str) -> str:
    rows = report.sql(
        f"""SELECT name, count(*) AS n, sum("end" - "start")::BIGINT AS total FROM osrt WHERE {part}
            GROUP BY name ORDER BY total DESC, name LIMIT {_MOST}"""
    ).to_pylist()
    return ", ".join(f"{duration(row['total'])} in {printable(row['name'])} ({row['n']:,} x)" for row in rows)


def _collections(report: Report, processes: tuple[int, int], wall: int) -> str:
    rows = [
        row
        for row in report.table("gc", ["process", "start", "end"]).to_pylist()
        if processes[0] <= row["process"] <= processes[1]
    ]
    lengths = [row["end"] - row["start"] for row in rows]
    several = len({row["process"] for row in rows})
    of = f" of {several} processes" if several > 1 else ""
    row = {"n": len(rows), "total": sum(lengths), "longest": max(lengths, default=0)}
    return (
        f"{duration(row['total'])} in {counted(row['n'], 'collection')}{of}, the longest "
        f"{duration(row['longest'])}"
        if row["total"] > _LEAST * wall
        else ""
    )


def _lock(report: Report, part: str) -> str:
    (row,) = report.sql(
        f"""SELECT coalesce(sum(waits), 0)::BIGINT AS n, coalesce(sum(waited), 0)::BIGINT AS waited,
                   coalesce(sum(held), 0)::BIGINT AS held FROM gil WHERE {part}"""
    ).to_pylist()
    waited = (
        f"threads waited {duration(row['waited'])} for it ({row['n']:,} x)"
        if row["n"]
        else "no thread waited for it"
    )
    return f"held for {duration(row['held'])}, {waited}" if row["held"] or row["n"] else ""
