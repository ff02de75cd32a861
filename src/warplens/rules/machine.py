"""Shared by rules about the CPUs: running and waiting time of threads, and the CPU use of other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warplens.analysis.once import once
from warplens.rules.hosts import edges, needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection


@dataclass(frozen=True)
class ThreadLoad:
    """How long a thread ran and could have run without a CPU, ns.

    `until`: when it was last known to do anything (the report's clock).

    A thread that was last seen without a CPU ended, or its next switch was lost: what follows is not known and does not count.
    """

    process: int
    thread: int
    running: int
    runnable: int
    until: int


@once
def loads(report: Report, selection: Selection) -> list[ThreadLoad]:
    """Return the threads whose states are known, those that lacked a CPU longest first.

    MissingData if there are none.
    """
    needed(report, selection, "thread_states", what="thread states")
    begin, end = edges(report, selection)
    length = f'greatest(least("end", {end}) - greatest("start", {begin}), 0)'
    rows = report.sql(
        f"""SELECT process, thread, coalesce(sum({length}) FILTER (state = 'running'), 0)::BIGINT AS running,
                   coalesce(sum({length}) FILTER (state = 'runnable'), 0)::BIGINT AS runnable,
                   arg_max(state, "start")::VARCHAR AS last, max("start")::BIGINT AS last_start,
                   arg_max({length}, "start")::BIGINT AS length
            FROM thread_states WHERE "start" < {end} AND "end" > {begin} GROUP BY process, thread"""
    ).to_pylist()
    known = []
    for row in rows:
        unknown = row["length"] if row["last"] == "runnable" else 0
        until = row["last_start"] if unknown else end
        known.append(
            ThreadLoad(
                row["process"], row["thread"], row["running"], runnable=row["runnable"] - unknown, until=until
            )
        )
    return sorted(known, key=lambda load: (-load.runnable, load.thread))


def cpus(report: Report) -> int:
    """Return how many CPUs the machine has; 0 if nobody knows."""
    return max((row["cpus"] or 0 for row in report.table("targets").to_pylist()), default=0)


def used(report: Report, selection: Selection, running: int) -> tuple[float, float | None]:
    """Return how many CPUs this run used on average, and how many others on the machine did.

    None if nobody knows.

    `running`: ns that the threads whose states are known ran.
    """
    begin, end = edges(report, selection)
    span = max(end - begin, 1)
    own = running / span
    if selection.window(report) is None:
        whole = sum(
            part.usage.get("user_ns", 0) + part.usage.get("system_ns", 0) for part in report.manifests
        )
        own = max(own, whole / span)
    if not report.tables["host_metrics"]:
        return own, None
    where = f"metric = 'CPU Load' AND \"start\" BETWEEN {begin} AND {end}"
    (row,) = report.sql(f"SELECT avg(value) AS load FROM host_metrics WHERE {where}").to_pylist()
    return own, None if row["load"] is None else max(row["load"] / 100 * cpus(report) - own, 0.0)
