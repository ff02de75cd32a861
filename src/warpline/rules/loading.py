"""When the thread that trains waits for the next batch: by the names of its ranges, and by what it waits in."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpline.query.intervals import Cover
from warpline.rules.base import Evidence
from warpline.rules.hosts import leading, rows, threads
from warpline.rules.stacks import Stacks

if TYPE_CHECKING:
    from warpline.query import Report, Selection

# What people, and frameworks, call it.
_NAMES = re.compile(
    r"enumerate\(DataLoader\)#.*__next__|(.*[^a-z])?(data[ _.-]?load(er|ing)?|train_dataloader_next|(load(ing)?|next|get|fetch(ing)?"
    r"|read(ing)?|wait(ing)?[ _.-]for)[ _.-]?(the )?(next )?(data|batch|batches|samples?|inputs?)|(batch|data)[ _.-]?(wait|fetch)"
    r"|input[ _.-]?pipeline|data_?time)([^a-z].*)?",
    re.IGNORECASE,
)
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
    for process, thread in leading(report, selection).items():
        ranges = rows(report, selection, "id, message, depth", "nvtx_ranges", f"thread = {thread} AND style = 'PushPop' AND task IS NULL")
        called = {text for text in pc.unique(_texts(ranges, "message")).to_pylist() if text and _NAMES.fullmatch(text)}
        mine = ranges.filter(pc.is_in(_texts(ranges, "message"), value_set=pa.array(sorted(called), pa.string()))).to_pylist()
        outer, reach = [], 0
        for row in mine:  # one inside another counts with that
            if row["start"] >= reach:
                outer.append(Evidence("nvtx_ranges", row["id"], row["start"], row["end"], row["message"], process, thread))
                reach = row["end"]
        known = Cover([row.start for row in outer], [row.end for row in outer])
        calls = rows(report, selection, "id, name, stack", "osrt", f"thread = {thread} AND {_WAITS} AND stack IS NOT NULL")
        for row in calls.to_pylist():
            place = stacks.place(row["stack"])
            if place.loads and not known.within(np.array([row["start"]]), np.array([row["end"]]))[0]:
                text = f"{row['name']} in {place.function}"
                outer.append(Evidence("osrt", row["id"], row["start"], row["end"], text, process, thread))
        if outer:
            names = list(dict.fromkeys(row.text for row in outer))
            found.append(Waits(process, thread, Cover([row.start for row in outer], [row.end for row in outer]), outer, names))
    return found


def meanwhile(report: Report, selection: Selection, waited: Waits) -> str:
    """Return what another thread mostly did in the C library meanwhile: `thread loader was in read of /data`; empty: not known."""
    where = f"process = {waited.process} AND thread <> {waited.thread} AND (\"group\" IN ('file', 'socket') OR name::VARCHAR = 'usleep')"
    sums: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in rows(report, selection, "thread, name, target", "osrt", where).to_pylist():
        inside = int(waited.cover.within(np.array([row["start"]]), np.array([row["end"]]))[0])
        sums[row["thread"], row["name"], row["target"]] += inside
    best = max(sums, key=lambda key: sums[key], default=None)
    if best is None or sums[best] * 4 < waited.cover.total:
        return ""
    return f"{threads(report).get(best[0], 'a thread')} was in {best[1]}" + (f" of {best[2]}" if best[2] else "")


def _texts(table: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.cast(table.column(name), pa.string())
