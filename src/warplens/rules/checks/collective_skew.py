"""Ranks that come to a collective at different times: the early ones wait for the last.

## What it looks for
Collective operations (all-reduce, all-gather, reduce-scatter, broadcast, …) of several ranks: the same operation of each rank, by its
number in its group where the report tells it (the table `collectives`), else by counting operations of that name, which must overlap.
Point-to-point operations are left out. The time from the first rank's begin to the last one's is the skew.

## Why it costs time
A collective ends when all ranks have taken part. Who comes early keeps a GPU busy with waiting, which looks like communication.

## What to do
Find what the last rank did before: the rules and `warplens stats --by rank` compare them. Typical: unequal work (sequence lengths,
experts, pipeline stages), one slow loader of data, one rank that logs, saves or evaluates, a GPU with lower clocks, a slow node. Balance
the work by cost instead of count; overlap the collective with the computation behind it.

## When it is wrong
Clocks of different hosts are brought together to within some 10 us to 1 ms: less skew than that means nothing. Where the waiting rank has
no other work, less skew wins nothing; where another rank is always the last, balancing wins less than stated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import span

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/ddp.html"
_AT_ONCE = 0.9  # share of the operations that must have been in progress at once on all ranks, else they were not put together rightly
# A member is a process, or one GPU of a process. Operations are put together by their number in the group, else by counting them.
_BY_GROUP = """SELECT process, NULL::INTEGER AS device, kernel AS id, "start", "end", name, coalesce("group", '') AS ring, {number} AS n
           FROM collectives WHERE kernel IS NOT NULL AND name NOT IN ('send', 'recv')"""
_NUMBERS = {True: "sequence", False: """row_number() OVER (PARTITION BY process, "group", name ORDER BY "start")"""}
_COUNTED = """SELECT process, device, id, "start", "end", name, '' AS ring,
                     row_number() OVER (PARTITION BY process, device, name ORDER BY "start") AS n
              FROM kernels WHERE (name ILIKE 'nccl%' OR name ILIKE 'rccl%') AND name NOT ILIKE '%sendrecv%'"""


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 2.0) -> list[Finding]:
    """Return a finding where ranks wait for each other.

    Args:
        report: the report.
        selection: which part of it.
        rows: how many of the collectives to keep as evidence.
        least: percent of the time looked at that skew must be able to cost.
    """
    collectives = _together(report, selection)
    first, last = (np.asarray(collectives.column(name).to_numpy(), np.int64) for name in ("first", "last"))
    begin, end = selection.window(report) or report.span
    skew = Cover(np.maximum(first, begin), np.minimum(last, end))
    whole = span(report, selection)
    if skew.total == 0 or skew.total < whole * least / 100:
        return []
    waits = last - report.origin - np.asarray(collectives.column("average").to_numpy(), np.float64)
    names = _ranks(report, collectives)
    who, times = np.unique(np.array([names[key] for key in zip(*_keys(collectives), strict=True)]), return_counts=True)
    worst = int(np.argmax(times))
    order = np.argsort(first - last, kind="stable")[:rows]
    hosts = report.sql("SELECT count(DISTINCT host) FROM processes").column(0)[0].as_py()
    about = collectives.take(order).to_pylist()
    return [
        Finding(
            "collective_skew",
            "collectives",
            f"Ranks wait {duration(skew.total)} for each other in collectives; {who[worst]} is last in {times[worst] / len(first):.0%}",
            f"In {counted(len(first), 'collective')} of {int(collectives.column('members')[0].as_py())} ranks the last came "
            f"{duration(float(np.median(last - first)))} after the first (median; at most {duration(int((last - first).max()))}). "
            "Meanwhile the others only waited.",
            f"See what {who[worst]} did before its collectives: unequal work, loading of data, logging or saving on one rank, a slower "
            "GPU. Balance the work by its cost.",
            tuple(_row(row, names) for row in about),
            len(first),
            skew.total,
            min(int(waits.sum()), skew.total),
            "medium" if hosts == 1 else "low",
        )
    ]


def _together(report: Report, selection: Selection) -> pa.Table:
    """Return a row for each collective: name, members, first, last and average begin, and the member that came last."""
    window = selection.window(report)
    counts = report.sql("""SELECT count(DISTINCT process) > 1 AS several, count(sequence) = count(*) AS numbered
                          FROM collectives WHERE kernel IS NOT NULL""").to_pylist()[0]
    numbered = counts["several"] and counts["numbered"]
    source = _BY_GROUP.format(number=_NUMBERS[numbered]) if counts["several"] else _COUNTED
    rows = report.sql(
        f"""WITH c AS ({source})
            SELECT name, count(*) AS members, min("start") AS first, max("start") AS last,
                   avg("start" - {report.origin}) AS average,
                   min("end") AS ended, max("end") AS done,
                   arg_max(process, "start") AS process, arg_max(device, "start") AS device, arg_max(id, "start") AS id
            FROM c GROUP BY name, ring, n ORDER BY first"""
    )
    if window is not None:  # only now: the ranks count alike
        rows = rows.filter(pc.and_(pc.less(rows.column("first"), window[1]), pc.greater(rows.column("done"), window[0])))
    members = np.asarray(rows.column("members").to_numpy())
    if not len(members) or members.max() < 2:
        raise MissingData(f"does not contain collectives of several ranks{selection.place(report)}.")
    whole = members > 1 if numbered else members == members.max()
    rows = rows.filter(whole)
    last, ended = (np.asarray(rows.column(name).to_numpy()) for name in ("last", "ended"))
    if not numbered and np.mean(last <= ended) < _AT_ONCE:
        raise MissingData(f"does not say which collectives of its ranks belong together{selection.place(report)}.")
    return rows.filter(last <= ended)


def _keys(collectives: pa.Table) -> tuple[list[Any], list[Any]]:
    return collectives.column("process").to_pylist(), collectives.column("device").to_pylist()


def _ranks(report: Report, collectives: pa.Table) -> dict[tuple[int, int | None], str]:
    """Name the members: by rank, else by GPU and process."""
    ranks = {row["process"]: row["rank"] for row in report.sql("SELECT process, rank FROM processes").to_pylist()}
    keys = sorted(set(zip(*_keys(collectives), strict=True)), key=str)
    order = {process: number for number, process in enumerate(sorted({process for process, _ in keys}), 1)}
    names = {}
    for process, device in keys:
        rank = ranks.get(process)
        owner = f"process {order[process]}" if rank is None else f"rank {rank}"
        several = sum(other == process for other, _ in keys) > 1
        names[process, device] = f"GPU {device} of {owner}" if several else owner
    return names


def _row(row: dict[str, Any], names: dict[tuple[int, int | None], str]) -> Evidence:
    text = f"{row['name']}: all waited for {names[row['process'], row['device']]}"
    values = {"members": row["members"]}
    return Evidence("kernels", row["id"], row["first"], row["last"], text, process=row["process"], device=row["device"], values=values)
