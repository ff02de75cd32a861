"""Ranks that arrive at a collective at different times: the early ranks wait for the last.

## What it looks for
Collective operations (all-reduce, all-gather, reduce-scatter, broadcast, …) of several ranks.
Operations of different ranks are matched by their number in the group if the report has it (table
`collectives`), or else by counting operations of one name, which must overlap. Point-to-point
operations do not count. The skew is the time from the first rank's start to the last rank's start.

## Why it costs time
A collective ends when all ranks have taken part. The GPU of an early rank is busy waiting, which
looks like communication.

## What to do
Find out what the last rank did before; the rules and `warplens stats --by rank` compare ranks.
Typical causes: unequal work (sequence lengths, experts, pipeline stages), one slow data loader, one
rank that logs, saves or evaluates, a GPU with lower clocks, a slow node. Balance the work by cost
instead of count, or overlap the collective with the computation after it.

## When it does not apply
If the skew is smaller than the error of the clocks: clocks of different hosts agree to between 10
us and 1 ms. If the waiting rank has no other work, less skew saves nothing. If a different rank is
last each time, balancing saves less than stated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding
from warplens.rules.collectives import keys_of, rank_names, together
from warplens.rules.gpus import span

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/ddp.html"


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 2.0) -> list[Finding]:
    """Return a finding where ranks wait for each other.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of collectives kept as evidence.
        least: percent of the judged time that skew must be able to cost.
    """
    collectives = together(report, selection)
    first, last = (np.asarray(collectives.column(name).to_numpy(), np.int64) for name in ("first", "last"))
    begin, end = selection.window(report) or report.span
    skew = Cover(np.maximum(first, begin), np.minimum(last, end))
    whole = span(report, selection)
    if skew.total == 0 or skew.total < whole * least / 100:
        return []
    waits = last - report.origin - np.asarray(collectives.column("average").to_numpy(), np.float64)
    names = rank_names(report, keys_of(collectives))
    who, times = np.unique(np.array([names[key] for key in keys_of(collectives)]), return_counts=True)
    worst = int(np.argmax(times))
    order = np.argsort(first - last, kind="stable")[:rows]
    hosts = report.sql("SELECT count(DISTINCT host) FROM processes").column(0)[0].as_py()
    about = collectives.take(order).to_pylist()
    return [
        Finding(
            rule="collective_skew",
            subject="collectives",
            title=f"Ranks wait {duration(skew.total)} for each other in collectives; {who[worst]} is last "
            f"in {percent(times[worst] / len(first))}",
            cause=f"In {counted(len(first), 'collective')} of {int(collectives.column('members')[0].as_py())} ranks the last came "
            f"{duration(float(np.median(last - first)))} after the first (median; at most "
            f"{duration(int((last - first).max()))}). "
            "Meanwhile the others only waited.",
            fix=f"Check what {who[worst]} did before its collectives: unequal work, data loading, "
            "logging or saving on one rank, a slower GPU. Balance the work by its cost.",
            evidence=tuple(_row(row, names) for row in about),
            occurrences=len(first),
            bound=skew.total,
            estimate=min(int(waits.sum()), skew.total),
            confidence="medium" if hosts == 1 else "low",
        )
    ]


def _row(row: dict[str, Any], names: dict[tuple[int, int | None], str]) -> Evidence:
    text = f"{row['name']}: all waited for {names[row['process'], row['device']]}"
    values = {"members": row["members"]}
    return Evidence(
        table="kernels",
        id=row["id"],
        start=row["first"],
        end=row["last"],
        text=text,
        process=row["process"],
        device=row["device"],
        values=values,
    )
