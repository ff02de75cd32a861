"""Formats the CPU side for the summary: hot functions, OS calls, Python's collector and its lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.cli.printing.tables import printable
from warplens.cli.printing.words import counted, duration
from warplens.model.words import percent

if TYPE_CHECKING:
    from warplens.report import Report

_MOST = 3
_LEAST = 0.01  # share of the run below which collections are not worth a line
# What is counted: the rows of which table, or what of them; silent where there is none.
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
        yield from _hot(report, part)
    texts = {
        "OS calls": _calls(report, part) if report.tables["osrt"] else "",
        "GC": _collections(report, processes, wall) if report.tables["gc"] else "",
        "GIL": _lock(report, part) if report.tables["gil"] else "",
    }
    yield from ((label, text) for label, text in texts.items() if text)


def _hot(report: Report, part: str) -> Iterator[tuple[str, str]]:
    """Functions that ran most: native samples, which have Python frames in them, say it best."""
    if not report.tables["samples"]:
        return
    rows = report.sql(
        f"""WITH ran AS (SELECT * FROM samples WHERE on_cpu AND stack IS NOT NULL AND {part}),
                 best AS (SELECT * FROM ran WHERE kind = (SELECT min(kind) FROM ran)),
                 sums AS (SELECT stack, sum(weight)::BIGINT AS weight FROM best GROUP BY stack)
            SELECT f.function, sum(s.weight)::BIGINT AS weight, (SELECT sum(weight)::BIGINT FROM sums) AS whole
            FROM sums s JOIN frames f ON f.frame = s.stack GROUP BY f.function ORDER BY weight DESC, f.function LIMIT {_MOST}"""
    ).to_pylist()
    hot = [
        f"{percent(row['weight'] / row['whole'])} {printable(row['function'])}"
        for row in rows
        if row["whole"]
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
        f"{duration(row['total'])} in {counted(row['n'], 'collection')}{of}, the longest {duration(row['longest'])}"
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
        else "nobody waited for it"
    )
    return f"held for {duration(row['held'])}, {waited}" if row["held"] or row["n"] else ""
