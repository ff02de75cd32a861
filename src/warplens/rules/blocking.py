"""Calls that block a thread for input or output in the middle of its work, by subject and cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warplens.analysis.intervals import Cover
from warplens.model.words import duration
from warplens.rules.base import Evidence, most
from warplens.rules.hosts import ceiling, edges, idle, leading, needed, rows, threads

if TYPE_CHECKING:
    from warplens.report import Report, Selection


@dataclass(frozen=True)
class Blocked:
    """Calls of one function on one thread (in words).

    `cover`: when they blocked; `lost`: when that cost time, as far as it is known; `bound`: what can be won, ns.
    """

    name: str
    thread: str
    calls: list[dict[str, Any]]
    cover: Cover
    lost: Cover
    bound: int

    def evidence(self) -> tuple[Evidence, ...]:
        """Return the longest calls."""
        return most(
            Evidence(
                table="osrt",
                id=row["id"],
                start=row["start"],
                end=row["end"],
                text=f"{row['name']}{' of ' + row['target'] if row['target'] else ''} for {duration(row['end'] - row['start'])}",
                process=row["process"],
                thread=row["thread"],
                values={} if row["bytes"] is None else {"bytes": row["bytes"]},
            )
            for row in self.calls
        )


def blocked(
    report: Report, selection: Selection, condition: str, shortest: float, least: float, times: int
) -> list[Blocked]:
    """Return what blocks, the most expensive first.

    If there is a GPU it counts on the thread that launches, or steps, while a GPU has nothing to do; else within NVTX ranges, on any
    thread: there a program says that it works.

    Args:
        report: the report.
        selection: the part to use.
        condition: SQL on rows of `osrt`.
        shortest: ms that a call must last.
        least: percent of the time looked at that calls of one function must take, without the longest one.
        times: how many of them there must be.
    """
    needed(report, selection, "osrt", what="OS runtime data", source="osrt")
    begin, end = edges(report, selection)
    gpu, lead = idle(report, selection), set(leading(report, selection).values())
    inside = (
        f"thread IN ({', '.join(map(str, lead)) or 'NULL'})" if gpu is not None else '"range" IS NOT NULL'
    )
    long = f'"end" - "start" >= {round(shortest * 1e6)}'
    waits = rows(
        report,
        selection,
        "id, process, thread, name, target, bytes",
        table="osrt",
        where=f"({condition}) AND {inside} AND {long}",
    )
    names, groups = threads(report), defaultdict(list)
    for row in waits.to_pylist():
        groups[row["name"], names.get(row["thread"], "a thread")].append(row)
    result = []
    for (name, thread), calls in groups.items():
        cover = Cover([row["start"] for row in calls], [row["end"] for row in calls])
        lost = cover if gpu is None else cover.both(gpu)
        longest = max(row["end"] - row["start"] for row in calls)
        if len(calls) < times or (min(cover.total - longest, lost.total)) * 100 < least * (end - begin):
            continue
        result.append(
            Blocked(name, thread, calls, cover=cover, lost=lost, bound=ceiling(report, selection, cover))
        )
    return sorted(result, key=lambda blocker: -blocker.cover.total)
