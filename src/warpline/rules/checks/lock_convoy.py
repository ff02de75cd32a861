"""Threads that stand in a queue for one lock.

## What it looks for
Functions in which two or more threads waited for a mutex, semaphore or read-write lock, at least ten times and together in more than 5 %
of the time that is looked at. Needs the calls of the C library (`-t osrt`) with their stacks. Waiting for something to happen (queues,
events, conditions, idle workers of a pool) does not count, nor does the GIL.

## Why it costs time
While one thread works under the lock the others stand still, so that several threads do the work of one. Each hand-over costs a change of
thread on top of it.

## What to do
Work outside the lock and hold it only to note the result; give each thread data of its own and put it together at the end; or split the
lock.

## When it is wrong
Where what the lock protects cannot be done twice at the same time anyway, such as a single disk. Where there are no CPUs for more than
one of the threads. Where a lock is used to tell that something happened, in code that this rule does not know.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from warpline.errors import MissingData
from warpline.model.words import counted, duration
from warpline.query.intervals import Cover
from warpline.rules.base import Evidence, Finding, most
from warpline.rules.hosts import edges, needed, rows, threads
from warpline.rules.stacks import Stacks

if TYPE_CHECKING:
    from warpline.query import Report, Selection

LINK = "https://docs.python.org/3/library/threading.html#lock-objects"
_LOCKS = r"pthread_(mutex|rwlock|spin)_.*|sem_.*|mtx_.*|futex"


def check(report: Report, selection: Selection, *, least: float = 5, times: int = 10) -> list[Finding]:
    """Return a finding for each place in the program at which threads queue.

    Args:
        report: the report.
        selection: which part of it.
        least: percent of the time looked at in which somebody must have waited there.
        times: how many waits there must be.
    """
    needed(report, selection, "osrt", "OS runtime data", "osrt")
    where = f"\"group\" = 'lock' AND regexp_full_match(name::VARCHAR, '{_LOCKS}')"
    found = rows(report, selection, "id, process, thread, name, stack, object", "osrt", where).to_pylist()
    if found and all(row["stack"] is None for row in found):
        raise MissingData(f"does not contain stacks of OS calls{selection.place(report)}: it cannot tell what threads wait for.")
    stacks, queues = Stacks(report), defaultdict(list)
    for row in found:
        place = stacks.place(row["stack"])
        if place.function is not None and not place.waits and not place.internal:
            queues[row["process"], place.function].append(row)
    begin, end = edges(report, selection)
    cpus = max(report.table("targets", ["cpus"]).column(0).to_pylist(), default=1)
    findings = []
    for (_, function), waits in queues.items():
        who = {row["thread"] for row in waits}
        cover = Cover([row["start"] for row in waits], [row["end"] for row in waits])
        if len(who) < 2 or len(waits) < times or cover.total * 100 < least * (end - begin):
            continue
        findings.append(_finding(function, waits, cover, who, cpus, threads(report)))
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _finding(function: str, waits: list[dict[str, Any]], cover: Cover, who: set[int], cpus: int, names: dict[int, str]) -> Finding:
    alone = {thread: sum(row["end"] - row["start"] for row in waits if row["thread"] == thread) for thread in who}
    # none of them gets ready earlier than it would without its own waits, and no CPU does the work of two
    estimate = min(max(alone.values()), round(cover.total * (1 - 1 / max(min(len(who), cpus), 2))))
    evidence = (
        Evidence(
            "osrt",
            row["id"],
            row["start"],
            row["end"],
            f"{names.get(row['thread'], 'a thread')} waits in {row['name']}",
            row["process"],
            row["thread"],
        )
        for row in waits
    )
    return Finding(
        "lock_convoy",
        function,
        f"{counted(len(who), 'thread')} waited for a lock in {function}, {counted(len(waits), 'time')}",
        f"In {duration(cover.total)} at least one of them stood still there; who waited longest lost {duration(max(alone.values()))}.",
        "Do the work outside the lock and take it only to note the result, or give each thread data of its own.",
        most(evidence),
        len(waits),
        cover.total,
        estimate,
        "medium",
    )
