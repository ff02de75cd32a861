"""When the thread that trains waits for the next batch: by the names of its ranges, and by what it waits in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence
from warplens.rules.hosts import leading, numbers, rows, threads
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
    """Return the waits for data of the thread that steps, or launches, or is the first, of each process."""
    first = leading(report, selection)
    of_thread: dict[int, list[Evidence]] = {thread: [] for thread in first.values()}
    for row in _named(report, selection, pa.array(of_thread, pa.int64())):
        of_thread[row.thread or 0].append(row)
    known = {thread: Cover([row.start for row in outer], [row.end for row in outer]) for thread, outer in of_thread.items() if outer}
    for row in _read(report, selection, pa.array(of_thread, pa.int64())):
        around = known.get(row.thread or 0)
        if around is None or not around.within(np.array([row.start]), np.array([row.end]))[0]:
            of_thread[row.thread or 0].append(row)
    waits_of_process = []
    for process, thread in first.items():
        if outer := of_thread[thread]:
            names = list(dict.fromkeys(row.text for row in outer))
            waits_of_process.append(
                DataWaits(process, thread, Cover([row.start for row in outer], [row.end for row in outer]), outer, names)
            )
    return waits_of_process


def _named(report: Report, selection: Selection, threads_of: pa.Array) -> Iterator[Evidence]:
    """Yield the ranges of these threads that are called so; one inside another counts with that."""
    names = "SELECT DISTINCT message::VARCHAR AS text FROM nvtx_ranges WHERE message IS NOT NULL"
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
    candidates = rows(report, selection, "id, message, process, thread", "nvtx_ranges", where)
    reach: dict[int, int] = {}
    for batch in candidates.filter(pc.is_in(candidates.column("thread"), value_set=threads_of)).to_batches():
        for row in batch.to_pylist():
            thread = row["thread"]
            if row["start"] >= reach.get(thread, 0) and (_NAMES.fullmatch(row["message"]) or row["id"] in recurring.get(thread, ())):
                yield Evidence("nvtx_ranges", row["id"], row["start"], row["end"], row["message"], row["process"], thread)
                reach[thread] = row["end"]


def _read(report: Report, selection: Selection, threads_of: pa.Array) -> Iterator[Evidence]:
    """Yield the waits of these threads in functions that load data, by their stacks."""
    stacks = StackPlaces(report)
    calls = rows(report, selection, "id, name, stack, process, thread", "osrt", f"{_WAITS} AND stack IS NOT NULL")
    calls = calls.filter(pc.is_in(calls.column("thread"), value_set=threads_of))
    loads = [stack for stack in pc.unique(calls.column("stack")).to_pylist() if stacks.place(stack).loads]
    for row in calls.filter(pc.is_in(calls.column("stack"), value_set=pa.array(loads, pa.int64()))).to_pylist():
        text = f"{row['name']} in {stacks.place(row['stack']).function}"
        yield Evidence("osrt", row["id"], row["start"], row["end"], text, row["process"], row["thread"])


def _recurring(report: Report, selection: Selection, names: list[str]) -> dict[int, set[int]]:
    """Return the ranges of these names that lie within steps, of each thread where at least half of its steps have one."""
    try:
        known = steps(report, selection)
    except MissingData:
        return {}
    result = {}
    for thread in pc.unique(known.column("thread")).to_pylist():
        own = known.filter(pc.equal(known.column("thread"), thread))
        first, last = numbers(own, "start"), numbers(own, "end")
        where = f"thread = {thread} AND style = 'PushPop' AND task IS NULL AND message::VARCHAR IN ({_listed(names)})"
        candidates = rows(report, selection, "id", "nvtx_ranges", where)
        step = np.searchsorted(first, numbers(candidates, "start"), "right") - 1
        inside = (step >= 0) & (numbers(candidates, "end") <= last[step])
        if len(first) > 1 and len(np.unique(step[inside])) * 2 >= len(first):
            result[thread] = set(numbers(candidates, "id")[inside].tolist())
    return result


def _listed(texts: list[str]) -> str:
    return ", ".join(quoted(text) for text in texts)


def meanwhile(report: Report, selection: Selection, waited: DataWaits) -> str:
    """Return what another thread mostly did in the C library meanwhile: `thread loader was in read of /data`; empty: not known."""
    where = f"process = {waited.process} AND thread <> {waited.thread} AND (\"group\" IN ('file', 'socket') OR name::VARCHAR = 'usleep')"
    calls = rows(report, selection, "thread, name, target", "osrt", where)
    inside = waited.cover.within(numbers(calls, "start"), numbers(calls, "end"))
    sums = calls.append_column("inside", pa.array(inside)).group_by(["thread", "name", "target"]).aggregate([("inside", "sum")])
    best = sums.sort_by([("inside_sum", "descending")]).slice(0, 1).to_pylist()
    if not best or best[0]["inside_sum"] * 4 < waited.cover.total:
        return ""
    about = f" of {best[0]['target']}" if best[0]["target"] else ""
    return f"{threads(report).get(best[0]['thread'], 'a thread')} was in {best[0]['name']}{about}"
