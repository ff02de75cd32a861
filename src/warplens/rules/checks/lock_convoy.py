"""Threads that queue for one lock.

## What it looks for
Functions in which two or more threads waited for a mutex, semaphore or read-write lock: at least
ten times, and together for more than 5 % of the judged time. Needs the calls of the C library
(`-t osrt`) with their stacks. Waiting for an event (queues, events, conditions, idle workers of a
pool) does not count, nor does the GIL.

## Why it costs time
While one thread works under the lock the others wait, so that several threads do the work of one.
Each hand-over also costs a thread switch.

## What to do
Work outside the lock, and hold it only to store the result. Or give each thread its own data and
combine it at the end, or split the lock.

## When it does not apply
If the lock protects something that only one thread can use at a time, such as a single disk. If
there are too few CPUs for more than one of the threads. If the lock signals an event, in code that
this rule does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import edges, needed, numbers, rows, threads
from warplens.rules.stacks import StackPlaces

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/library/threading.html#lock-objects"
_LOCKS = r"pthread_(mutex|rwlock|spin)_.*|sem_.*|mtx_.*|futex"


def check(report: Report, selection: Selection, *, least: float = 5, times: int = 10) -> list[Finding]:
    """Return a finding for each place in the program at which threads queue.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time in which at least one thread must have waited.
        times: minimum number of waits.
    """
    needed(report, selection, "osrt", what="OS runtime data", source="osrt")
    where = f"\"group\" = 'lock' AND regexp_full_match(name::VARCHAR, '{_LOCKS}')"
    lock_waits = rows(report, selection, "id, process, thread, name, stack", table="osrt", where=where)
    if lock_waits.num_rows == lock_waits.column("stack").null_count and lock_waits.num_rows:
        raise MissingData(
            f"does not contain stacks of OS calls{selection.place(report)}, which show the awaited locks."
        )
    queues = _queues(report, lock_waits, times)
    begin, end = edges(report, selection)
    cpus = max(report.table("targets", ["cpus"]).column(0).to_pylist(), default=1)
    names = threads(report)
    findings = []
    for function, waits in queues:
        start, finish, thread = (numbers(waits, name) for name in ("start", "end", "thread"))
        cover = Cover(start, finish)
        if len(np.unique(thread)) < 2 or len(start) < times or cover.total * 100 < least * (end - begin):
            continue
        alone = max(int((finish - start)[thread == own].sum()) for own in np.unique(thread))
        findings.append(
            _finding(function, waits, cover, alone=alone, who=len(np.unique(thread)), cpus=cpus, names=names)
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _queues(report: Report, lock_waits: pa.Table, times: int) -> list[tuple[str, pa.Table]]:
    """Return for each function of each process the waits in it that are for a lock, where there are some."""
    stacks = StackPlaces(report)
    keys, codes = np.unique(numbers(lock_waits, "stack"), return_inverse=True)
    places = [stacks.place(key if key >= 0 else None) for key in keys.tolist()]
    labels: dict[str, int] = {}
    label = np.full(len(keys), -1)
    for number, place in enumerate(places):
        if place.function is not None and not place.waits and not place.internal:
            label[number] = labels.setdefault(place.function, len(labels))
    mine, process = label[codes.ravel()], numbers(lock_waits, "process")
    often = np.bincount(mine[mine >= 0], minlength=len(labels)) >= times
    return [
        (function, lock_waits.filter(pa.array((mine == number) & (process == own))))
        for function, number in labels.items()
        if often[number]
        for own in np.unique(process[mine == number]).tolist()
    ]


def _finding(
    function: str, waits: pa.Table, cover: Cover, alone: int, who: int, cpus: int, names: dict[int, str]
) -> Finding:
    # none of them gets ready earlier than it would without its own waits, and no CPU does the work of two
    estimate = min(alone, round(cover.total * (1 - 1 / max(min(who, cpus), 2))))
    longest = np.argsort(numbers(waits, "start") - numbers(waits, "end"), kind="stable")[:50]
    evidence = (
        Evidence(
            table="osrt",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=f"{names.get(row['thread'], 'a thread')} waits in {row['name']}",
            process=row["process"],
            thread=row["thread"],
        )
        for row in waits.take(pa.array(longest)).to_pylist()
    )
    return Finding(
        rule="lock_convoy",
        subject=function,
        title=f"{counted(who, 'thread')} waited for a lock in {function}, {counted(waits.num_rows, 'time')}",
        cause=f"In {duration(cover.total)} at least one of them was blocked there; the thread that "
        f"waited longest lost {duration(alone)}.",
        fix="Do the work outside the lock and take it only to note the result, or give each thread its own data.",
        evidence=most(evidence),
        occurrences=waits.num_rows,
        bound=cover.total,
        estimate=estimate,
        confidence="medium",
    )
