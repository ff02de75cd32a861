"""Finds waits for the next batch in threads that carry the work.

By the names of its ranges, its OS calls, and samples of Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence
from warplens.rules.carriers import BUSY, carriers, computed, others_at_work
from warplens.rules.hosts import numbers, rows, threads_of_processes
from warplens.rules.stacks import StackPlaces

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# What people, and frameworks, call it.
_NAMES = re.compile(
    r"enumerate\(DataLoader\)#.*__next__|(.*[^a-z])?(data[ _.-]?load(er|ing)?|train_dataloader_next|(load(ing)?|next|get|fetch(ing)?"
    r"|read(ing)?|wait(ing)?[ _.-]for)[ _.-]?(the )?(next )?(data|batch|batches|samples?|inputs?)|(batch|data)[ _.-]?(wait|fetch)"
    r"|input[ _.-]?pipeline|data_?time)([^a-z].*)?",
    re.IGNORECASE,
)
# What may load anything: a name for the wait where it comes again and again within the steps.
_LOADS = re.compile(r"load(ing)?", re.IGNORECASE)
_COMPUTES = (
    0.05  # of the waits' time: what a thread must work between them where it neither steps nor launches
)
_PROVIDED = 0.25  # of the waits' time: what others must work in the meantime there
_WAITS = "(\"group\" IN ('lock', 'wait for events') OR (name::VARCHAR = 'read' AND target::VARCHAR = 'pipe'))"


@dataclass(frozen=True)
class DataWaits:
    """The waits of one thread. `rows`: Evidence for each; `names`: what they were called."""

    process: int
    thread: int
    cover: Cover
    rows: list[Evidence]
    names: list[str]


def waits(report: Report, selection: Selection) -> list[DataWaits]:
    """Return the waits for data of each process: of the thread that steps or launches.

    Of a main thread where it then computes.

    Of several threads of a process, that which waited longest counts. Workers and coordinators of pools wait for work, not for data.
    """
    carrying = carriers(report, selection)
    wanted = pa.array(carrying.process_of, pa.int64())
    of_thread: dict[int, list[Evidence]] = {thread: [] for thread in carrying.process_of}
    for row in _named(report, selection, wanted):
        of_thread[row.thread or 0].append(row)
    known = {
        thread: Cover([row.start for row in outer], [row.end for row in outer])
        for thread, outer in of_thread.items()
        if outer
    }
    for row in _read(report, selection, wanted, coordinators=carrying.proven):
        around = known.get(row.thread or 0)
        if around is None or not around.within(np.array([row.start]), np.array([row.end]))[0]:
            of_thread[row.thread or 0].append(row)
    for row in _sampled(report, selection, wanted, known=of_thread, coordinators=carrying.proven):
        of_thread[row.thread or 0].append(row)
    longest: dict[int, DataWaits] = {}
    for thread, outer in of_thread.items():
        if not outer:
            continue
        process = carrying.process_of[thread]
        cover = Cover([row.start for row in outer], [row.end for row in outer])
        own = DataWaits(
            process, thread, cover, rows=outer, names=list(dict.fromkeys(row.text for row in outer))
        )
        if (process not in longest or cover.total > longest[process].cover.total) and (
            carrying.proven or _feeds(report, selection, own)
        ):
            longest[process] = own
    return list(longest.values())


def _feeds(report: Report, selection: Selection, waited: DataWaits) -> bool:
    """Whether a thread computes with the data that it waited for, and others worked to provide it."""
    cover = waited.cover
    worked = computed(
        report, selection, waited.thread, begin=int(cover.start[0]), end=int(cover.end[-1])
    ).without(cover)
    if worked.total < _COMPUTES * cover.total:
        return False
    own = all(row.table == "nvtx_ranges" for row in waited.rows)  # the program itself calls it so
    return own or others_at_work(report, waited.thread, cover) >= _PROVIDED * cover.total


def _named(report: Report, selection: Selection, threads_of: pa.Array) -> Iterator[Evidence]:
    """Yield the ranges of these threads that are called so; one inside another counts with that."""
    # Groups of words by their numbers take a tenth of the time of distinct texts.
    names = "SELECT message::VARCHAR AS text FROM nvtx_ranges WHERE message IS NOT NULL GROUP BY message"
    texts = report.sql(  # a million names need not become Python's
        f"SELECT text FROM ({names}) WHERE regexp_full_match(text, $names, 'i') OR regexp_full_match(text, $loads, 'i')",
        {"names": _NAMES.pattern, "loads": _LOADS.pattern},
    ).column(0)
    loads = [text for text in texts.to_pylist() if _LOADS.fullmatch(text)]
    recurring = _recurring(report, selection, loads) if loads else {}
    called = _listed([*filter(_NAMES.fullmatch, texts.to_pylist()), *(loads if recurring else ())])
    if not called:
        return
    where = f"style = 'PushPop' AND task IS NULL AND message::VARCHAR IN ({called})"
    candidates = rows(report, selection, "id, message, process, thread", table="nvtx_ranges", where=where)
    reach: dict[int, int] = {}
    for batch in candidates.filter(pc.is_in(candidates.column("thread"), value_set=threads_of)).to_batches():
        for row in batch.to_pylist():
            thread = row["thread"]
            if row["start"] >= reach.get(thread, 0) and (
                _NAMES.fullmatch(row["message"]) or row["id"] in recurring.get(thread, ())
            ):
                yield Evidence(
                    table="nvtx_ranges",
                    id=row["id"],
                    start=row["start"],
                    end=row["end"],
                    text=row["message"],
                    process=row["process"],
                    thread=thread,
                )
                reach[thread] = row["end"]


def _read(
    report: Report, selection: Selection, threads_of: pa.Array, *, coordinators: bool
) -> Iterator[Evidence]:
    """Yield the waits of these threads in functions that load data, by their stacks.

    `coordinators`: those for results of a pool, too.
    """
    stacks = StackPlaces(report)
    calls = rows(
        report,
        selection,
        "id, name, stack, process, thread",
        table="osrt",
        where=f"{_WAITS} AND stack IS NOT NULL",
    )
    calls = calls.filter(pc.is_in(calls.column("thread"), value_set=threads_of))
    places = {stack: stacks.place(stack) for stack in pc.unique(calls.column("stack")).to_pylist()}
    loads = [
        stack for stack, place in places.items() if place.loads and (coordinators or not place.coordinates)
    ]
    for row in calls.filter(
        pc.is_in(calls.column("stack"), value_set=pa.array(loads, pa.int64()))
    ).to_pylist():
        text = f"{row['name']} in {places[row['stack']].function}"
        yield Evidence(
            table="osrt",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=text,
            process=row["process"],
            thread=row["thread"],
        )


def _sampled(
    report: Report,
    selection: Selection,
    threads_of: pa.Array,
    known: Mapping[int, Sequence[Evidence]],
    *,
    coordinators: bool,
) -> list[Evidence]:
    """Return the waits that only samples of Python saw.

    In a queue, or, working or not, in a DataLoader's iterator.
    """
    stacks = StackPlaces(report)
    ticks = rows(
        report,
        selection,
        "id, process, thread, stack, on_cpu, weight, count",
        table="samples",
        where="kind::VARCHAR = 'python'",
    )
    ticks = ticks.filter(pc.is_in(ticks.column("thread"), value_set=threads_of))
    places = {stack: stacks.place(stack) for stack in pc.unique(ticks.column("stack")).to_pylist()}
    wanted = [
        stack
        for stack, place in places.items()
        if place.iterates or (place.loads and (coordinators or not place.coordinates))
    ]
    joined: list[Evidence] = []
    last: dict[int, int] = {}  # thread -> its last row in `joined`
    for row in ticks.filter(
        pc.is_in(ticks.column("stack"), value_set=pa.array(wanted, pa.int64()))
    ).to_pylist():
        place, thread, tick = places[row["stack"]], row["thread"], row["weight"] // max(row["count"], 1)
        if row["on_cpu"] and not place.iterates:
            continue
        start, before = row["start"] - tick, joined[last[thread]] if thread in last else None
        if before is not None and start - before.end <= tick // 2:
            joined[last[thread]] = replace(before, end=max(before.end, row["end"]))
            continue
        last[thread] = len(joined)
        text = place.caller or str(place.function)
        joined.append(
            Evidence(
                table="samples",
                id=row["id"],
                start=start,
                end=row["end"],
                text=text,
                process=row["process"],
                thread=thread,
            )
        )
    covers = {
        thread: Cover([row.start for row in own], [row.end for row in own]) for thread, own in known.items()
    }
    alone = [
        covers[row.thread or 0].within(np.array([row.start]), np.array([row.end]))[0] * 2
        < row.end - row.start
        for row in joined
    ]
    return [row for row, kept in zip(joined, alone, strict=True) if kept]


def _recurring(report: Report, selection: Selection, names: list[str]) -> dict[int, set[int]]:
    """Return the ranges of these names within steps.

    Of each thread where at least half of its steps have one.
    """
    try:
        known = steps(report, selection)
    except MissingData:
        return {}
    result = {}
    for thread in pc.unique(known.column("thread")).to_pylist():
        own = known.filter(pc.equal(known.column("thread"), thread))
        first, last = numbers(own, "start"), numbers(own, "end")
        where = f"thread = {thread} AND style = 'PushPop' AND task IS NULL AND message::VARCHAR IN ({_listed(names)})"
        candidates = rows(report, selection, "id", table="nvtx_ranges", where=where)
        step = np.searchsorted(first, numbers(candidates, "start"), "right") - 1
        inside = (step >= 0) & (numbers(candidates, "end") <= last[step])
        if len(first) > 1 and len(np.unique(step[inside])) * 2 >= len(first):
            result[thread] = set(numbers(candidates, "id")[inside].tolist())
    return result


def _listed(texts: list[str]) -> str:
    return ", ".join(quoted(text) for text in texts)


def meanwhile(report: Report, selection: Selection, waited: DataWaits) -> str:
    """Return what another thread of the run mostly did in the C library in the meantime.

    Empty: not known.

    For example: `thread loader of train.py was in read of /data`.
    """
    calls = rows(
        report, selection, "thread, name, target", table="osrt", where=f"thread <> {waited.thread} AND {BUSY}"
    )
    inside = waited.cover.within(numbers(calls, "start"), numbers(calls, "end"))
    sums = (
        calls.append_column("inside", pa.array(inside))
        .group_by(["thread", "name", "target"])
        .aggregate([("inside", "sum")])
    )
    best = sums.sort_by([("inside_sum", "descending")]).slice(0, 1).to_pylist()
    if not best or best[0]["inside_sum"] * 4 < waited.cover.total:
        return ""
    about = f" of {best[0]['target']}" if best[0]["target"] else ""
    return (
        f"{threads_of_processes(report).get(best[0]['thread'], 'a thread')} was in {best[0]['name']}{about}"
    )
