"""The threads that carry the work of a report: those that step or launch.

Without any, main threads that do the work themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover, gaps
from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData
from warplens.rules.hosts import cut, numbers

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# Processes that a pool started: by how they began, and by the command lines of multiprocessing, loky and execnet.
_POOLED = """began = 'fork' OR regexp_matches(command,
    'multiprocessing[.](spawn|forkserver|resource_tracker)|--multiprocessing-fork|popen_loky|sys.stdin.readline')"""
# SQL on `osrt`: calls in which a thread provides data.
BUSY = "(\"group\" IN ('file', 'socket') OR name::VARCHAR = 'usleep')"


@dataclass(frozen=True)
class Carriers:
    """Thread to process.

    `proven`: the threads step or launch; else they are main threads, of which nothing else is
    known.
    """

    process_of: dict[int, int]
    proven: bool


def carriers(report: Report, selection: Selection) -> Carriers:
    """Return the threads that the run waits for.

    All that step or launch kernels, else the main threads that no pool started.
    """
    launching = report.sql(
        "SELECT DISTINCT thread, process FROM cuda_api WHERE contains(name::VARCHAR, 'Launch')"
    ).to_pylist()
    process_of = {row["thread"]: row["process"] for row in launching}
    try:
        known = steps(report, selection)
    except MissingData:
        pass
    else:
        process_of |= {
            row["thread"]: row["process"]
            for row in known.group_by(["process", "thread"]).aggregate([]).to_pylist()
        }
    if process_of:
        return Carriers(process_of, True)
    mains = report.sql(  # the first thread where the main one is not known
        f"""SELECT DISTINCT ON (t.process) t.thread, t.process FROM threads t JOIN processes p USING (process)
            WHERE NOT coalesce({_POOLED}, false) ORDER BY t.process, t.tid <> p.pid, t.thread"""
    ).to_pylist()
    return Carriers({row["thread"]: row["process"] for row in mains}, False)


def computed(report: Report, selection: Selection, thread: int, begin: int, end: int) -> Cover:
    """Return when a thread worked between two times (ns).

    By the scheduler, else by its samples, else outside of its OS calls.
    """
    where = f'thread = {thread} AND "start" < {end} AND "end" > {begin}'
    ran = report.sql(
        f"""SELECT "start", "end", state::VARCHAR = 'running' AS ran FROM thread_states WHERE {where}"""
    )
    if ran.num_rows:
        ran = ran.filter(ran.column("ran"))
        return Cover(*(np.clip(numbers(ran, edge), begin, end) for edge in ("start", "end")))
    seen = report.sql(
        f'SELECT "start" - weight // greatest(count, 1) AS "start", "end", on_cpu FROM samples WHERE {where}'
    )
    if seen.num_rows:
        seen = seen.filter(seen.column("on_cpu"))
        return Cover(*(np.clip(numbers(seen, edge), begin, end) for edge in ("start", "end")))
    calls = report.sql(f'SELECT "start", "end" FROM osrt WHERE {where}')
    return Cover(
        *gaps(*cut(report, selection, start=numbers(calls, "start"), end=numbers(calls, "end")), begin, end)
    )


def others_at_work(report: Report, thread: int, waited: Cover) -> int:
    """Return the time of a wait (ns) in which another thread of the run worked.

    It ran, or read files and sockets.
    """
    begin, end = int(waited.start[0]), int(waited.end[-1])
    where = f'thread <> {thread} AND "start" < {end} AND "end" >= {begin}'
    rows = report.sql(
        f"""SELECT "start", "end" FROM thread_states WHERE state::VARCHAR = 'running' AND {where}
            UNION ALL SELECT "start" - weight // greatest(count, 1), "end" FROM samples WHERE on_cpu AND {where}
            UNION ALL SELECT "start", "end" FROM osrt WHERE {BUSY} AND {where}"""
    )
    return waited.both(Cover(numbers(rows, "start"), numbers(rows, "end"))).total
