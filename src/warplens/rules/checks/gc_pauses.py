"""Long pauses of Python's garbage collector.

## What it looks for
Collections that each took longer than 10 ms and together more than 2 % of the judged time. If there
is a GPU, they count only while it was idle. The time to free objects (0.5 us each) does not count,
nor time in which the collecting thread had no CPU. If a process has NVTX ranges, pauses outside of
all ranges do not count.

## Why it costs time
A collection holds the GIL: all Python threads wait until it is over, including the thread that
launches GPU work. A collection of generation 2 visits every living object. With millions of them,
common in data sets and large models, it takes a tenth of a second and more.

## What to do
The finding names the fix for its case. If pauses of generation 2 are as long at the end as at the
start, the heap was built before: call `gc.freeze()` when everything is loaded, and later
collections skip these objects. If pauses grow, the heap grows during the run, and `gc.freeze()` at
the start saves nothing. Then raise the thresholds (`gc.set_threshold(50_000, 50, 1000)`), which
saves a part. Or call `gc.disable()` and collect when a pause does no harm, in all ranks at the same
step, which saves everything. Both cost memory: garbage in cycles stays until the next collection.
Remove calls of `gc.collect()` from the loop.

## When it does not apply
If the program makes cyclic garbage faster than memory lasts: collections are necessary, and only
the visits to living objects can be saved. If a GPU has enough queued work for the pause, there is
no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.model.words import counted, duration, size
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import ceiling, edges, idle, needed, numbers, rows

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/library/gc.html#gc.freeze"
IDLE = ("host-bound", "head")
_THRESHOLDS = "gc.set_threshold(50_000, 50, 1000)"
_ENOUGH = 4  # pauses of generation 2 that show whether the heap grows
_GROWS = 2.0  # times as long at the end of the run as at its begin
_OBJECT = 100  # bytes of an object and what belongs to it: a small dict or instance has 64 and more
_OF_AN_OBJECT = 500  # ns to free one, at most: what of a pause was no walk in vain


def check(report: Report, selection: Selection, *, longest: float = 10, least: float = 2) -> list[Finding]:
    """Return one finding for the collections of all processes.

    Args:
        report: the report.
        selection: the part to use.
        longest: ms; shorter pauses do not count.
        least: percent of the judged time that they must take.
    """
    needed(report, selection, "gc", what="Python garbage collection data", source="gc")
    long = f'"end" - "start" > {round(longest * 1e6)}'
    collections = rows(
        report, selection, "id, process, thread, generation, collected", table="gc", where=long
    ).to_pylist()
    gpu = idle(report, selection)
    collections = _in_the_work(report, selection, collections)
    starved = _starved(report, selection, {row["thread"] for row in collections})
    collections = [row for row in collections if _worked(row, starved) > longest * 1e6]
    if not collections:
        return []
    pauses = Cover([row["start"] for row in collections], [row["end"] for row in collections])
    for thread, cover in starved.items():
        own = [row for row in collections if row["thread"] == thread]
        pauses = pauses.without(cover.both(Cover([row["start"] for row in own], [row["end"] for row in own])))
    freed = sum(row["collected"] for row in collections) * _OF_AN_OBJECT
    lost = pauses if gpu is None else pauses.both(gpu)
    begin, end = edges(report, selection)
    estimate = max(lost.total - freed, 0)
    if estimate * 100 < least * (end - begin):
        return []
    full = [row for row in collections if row["generation"] == 2]
    longest_pause = duration(max(row["end"] - row["start"] for row in collections))
    cause = f"The longest took {longest_pause}; {len(full):,} were of generation 2, which looks at "
    cause += (
        f"every object that is alive. They freed {sum(row['collected'] for row in collections):,} objects."
    )
    if gpu is not None:
        cause += f" GPUs had nothing to do for {duration(lost.total)} of the {duration(pauses.total)}."
    evidence = (
        Evidence(
            table="gc",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=f"generation {row['generation']}",
            process=row["process"],
            thread=row["thread"],
            values={"collected": row["collected"]},
        )
        for row in collections
    )
    return [
        Finding(
            rule="gc_pauses",
            subject="Python's garbage collector",
            title=f"Python stood still {counted(len(collections), 'time')} to collect garbage, {duration(pauses.total)} in all",
            cause=cause,
            fix=_advice(report, selection),
            evidence=most(evidence),
            occurrences=len(collections),
            bound=ceiling(report, selection, pauses),
            estimate=estimate,
            confidence="high" if gpu is None or lost.total > pauses.total / 2 else "medium",
            claim=pauses,
        )
    ]


def _starved(report: Report, selection: Selection, threads: set[int]) -> dict[int, Cover]:
    """Return when threads could run and had no CPU, where every switch is known: a collection cannot be blamed for that."""
    listed = ", ".join(map(str, sorted(threads))) or "NULL"
    waits = rows(
        report,
        selection,
        "thread",
        table="thread_states",
        where=f"state = 'runnable' AND exact AND thread IN ({listed})",
    )
    thread, start, end = (numbers(waits, name) for name in ("thread", "start", "end"))
    return {own: Cover(start[thread == own], end[thread == own]) for own in threads}


def _worked(row: dict[str, Any], starved: dict[int, Cover]) -> int:
    """Return how long a collection had a CPU, ns."""
    begin, end = (np.array([row[edge]], np.int64) for edge in ("start", "end"))
    return int(row["end"] - row["start"] - starved[row["thread"]].within(begin, end)[0])


def _advice(report: Report, selection: Selection) -> str:
    """Return the fix and its price, by the trend of generation 2's pauses.

    In the process that has most of them.
    """
    everything = rows(report, selection, "process, generation, collected", table="gc")
    process, generation, start, end = (
        numbers(everything, name) for name in ("process", "generation", "start", "end")
    )
    full = generation == 2
    if not full.any():
        return f"Raise the thresholds of the collector ({_THRESHOLDS}): it runs less often."
    length = np.where(full, end - start, 0)
    worst = max(np.unique(process[full]).tolist(), key=lambda key: int(length[process == key].sum()))
    pauses = length[full & (process == worst)]
    third = max(len(pauses) // 3, 1)
    first, last = (float(np.median(some)) for some in (pauses[:third], pauses[-third:]))
    if len(pauses) < _ENOUGH or last < _GROWS * first:
        return (
            "Call gc.freeze() when everything is loaded: later collections skip these objects. Or "
            "raise the thresholds of the collector, or collect when a pause does no harm."
        )
    freed = int(numbers(everything, "collected")[process == worst].sum())
    return (
        f"The heap grows while the program runs (pauses of generation 2: {duration(round(first))} "
        f"at first, {duration(round(last))} at the "
        "end): gc.freeze() at the start does not help. gc.disable(), with gc.collect() when a pause "
        f"does no harm, saves all of it; higher thresholds ({_THRESHOLDS}) save a part. The price is "
        f"memory: {_price(freed)}"
    )


def _price(freed: int) -> str:
    if not freed:
        return "garbage in cycles stays, but these collections freed none."
    return (
        f"garbage in cycles stays until then; these collections freed {counted(freed, 'object')}, "
        f"{size(freed * _OBJECT)} or more."
    )


def _in_the_work(report: Report, selection: Selection, pauses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what lies in none of the NVTX ranges of its process: it may be the start-up.

    Without ranges, everything counts.
    """
    if not pauses:
        return []
    ranges = rows(report, selection, "process", table="nvtx_ranges", where="depth = 0")
    process, start, end = (numbers(ranges, name) for name in ("process", "start", "end"))
    kept = []
    for own in {row["process"] for row in pauses}:
        mine = process == own
        cover = Cover(start[mine], end[mine])
        some = [row for row in pauses if row["process"] == own]
        inside = cover.within(*(np.array([row[edge] for row in some], np.int64) for edge in ("start", "end")))
        kept += [row for row, ns in zip(some, inside.tolist(), strict=True) if ns or not mine.any()]
    return sorted(kept, key=lambda row: row["start"])
