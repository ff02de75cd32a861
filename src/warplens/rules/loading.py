"""When the thread that trains waits for the next batch: by the names of its ranges, and by what it waits in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.errors import MissingData
from warplens.query.intervals import Cover
from warplens.query.steps import steps
from warplens.rules.base import Evidence
from warplens.rules.hosts import leading, numbers, rows, threads
from warplens.rules.stacks import Stacks

if TYPE_CHECKING:
    from warplens.query import Report, Selection

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
class Waits:
    """The waits of one thread. `rows`: Evidence for each; `names`: what they were called."""

    process: int
    thread: int
    cover: Cover
    rows: list[Evidence]
    names: list[str]


def waits(report: Report, selection: Selection) -> list[Waits]:
    """Return the waits for data of the thread that steps, or launches, or is the first, of each process."""
    stacks, found = Stacks(report), []
    texts = report.sql("SELECT DISTINCT message::VARCHAR AS text FROM nvtx_ranges WHERE message IS NOT NULL").column(0).to_pylist()
    loads = [text for text in texts if _LOADS.fullmatch(text)]
    recurring = _recurring(report, selection, loads) if loads else {}
    called = _listed([*filter(_NAMES.fullmatch, texts), *loads])
    for process, thread in leading(report, selection).items():
        where = f"thread = {thread} AND style = 'PushPop' AND task IS NULL AND message::VARCHAR IN ({called})"
        outer, reach = [], 0
        for row in (
            rows(report, selection, "id, message", "nvtx_ranges", where).to_pylist() if called else ()
        ):  # one inside another counts with that
            if row["start"] >= reach and (_NAMES.fullmatch(row["message"]) or row["id"] in recurring.get(thread, ())):
                outer.append(Evidence("nvtx_ranges", row["id"], row["start"], row["end"], row["message"], process, thread))
                reach = row["end"]
        known = Cover([row.start for row in outer], [row.end for row in outer])
        calls = rows(report, selection, "id, name, stack", "osrt", f"thread = {thread} AND {_WAITS} AND stack IS NOT NULL")
        loads = [stack for stack in pc.unique(calls.column("stack")).to_pylist() if stacks.place(stack).loads]
        for row in calls.filter(pc.is_in(calls.column("stack"), value_set=pa.array(loads, pa.int64()))).to_pylist():
            place = stacks.place(row["stack"])
            if not known.within(np.array([row["start"]]), np.array([row["end"]]))[0]:
                text = f"{row['name']} in {place.function}"
                outer.append(Evidence("osrt", row["id"], row["start"], row["end"], text, process, thread))
        if outer:
            names = list(dict.fromkeys(row.text for row in outer))
            found.append(Waits(process, thread, Cover([row.start for row in outer], [row.end for row in outer]), outer, names))
    return found


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
        found = rows(report, selection, "id", "nvtx_ranges", where)
        step = np.searchsorted(first, numbers(found, "start"), "right") - 1
        inside = (step >= 0) & (numbers(found, "end") <= last[step])
        if len(first) > 1 and len(np.unique(step[inside])) * 2 >= len(first):
            result[thread] = set(numbers(found, "id")[inside].tolist())
    return result


def _listed(texts: list[str]) -> str:
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


def meanwhile(report: Report, selection: Selection, waited: Waits) -> str:
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
