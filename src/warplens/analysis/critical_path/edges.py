"""Connects the begin and the end of a graph.

Operations without a known cause, and the last ones to finish.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warplens.analysis.critical_path.host import Host
from warplens.analysis.critical_path.parts import BEGIN, END, SYNC, GraphBuilder
from warplens.analysis.critical_path.recorded import RecordedCalls, RecordedWork, Window
from warplens.analysis.critical_path.streams import Items
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array


def add_begins(
    calls: RecordedCalls, work: RecordedWork, items: Items, host: Host, builder: GraphBuilder
) -> None:
    """Let threads, and operations without a known launch, begin after their process as they did.

    That is the last call before them of the thread of their process that has the most calls.
    """
    if not len(calls):
        return
    caused = np.zeros(builder.points, bool)
    for ends in builder.edges["end"]:
        caused[ends] = True
    time = builder.time()
    points = np.concatenate((host.first, items.operation))
    process = np.concatenate((host.process, work.columns["process"]))
    orphans = np.flatnonzero(~caused[points])
    busiest = _busiest(calls, host)
    for place in {int(host.process[place]): int(place) for place in reversed(busiest.tolist())}.values():
        mine = orphans[(process[orphans] == host.process[place]) & (points[orphans] != host.first[place])]
        theirs = np.flatnonzero(calls.columns["thread"] == host.threads[place])
        before = np.searchsorted(calls.columns["start"][theirs], time[points[mine]], side="right") - 1
        mine, before = mine[before >= 0], theirs[before[before >= 0]]
        builder.add_edges(
            host.begin[before],
            points[mine],
            time[points[mine]] - calls.columns["start"][before],
            kind=BEGIN,
            thing=NOTHING,
        )


def add_end(
    window: Window | None,
    calls: RecordedCalls,
    work: RecordedWork,
    items: Items,
    host: Host,
    builder: GraphBuilder,
    last: int,
    first_call: int,
) -> None:
    """Let what ends last decide, of several at once the thread with the most calls.

    Threads that neither launch nor wait, such as those that look after others, do not count: they would continue whatever becomes shorter.
    """
    counts: npt.NDArray[np.bool_] = np.zeros(len(host.threads), bool)
    launch = calls.find(work.columns["api"])
    waits = [
        thing - first_call
        for thing, kind in zip(builder.edges["thing"], builder.edges["kind"], strict=True)
        if len(kind) and kind[0] == SYNC
    ]
    used = np.concatenate((launch[launch >= 0], *waits))
    counts[np.searchsorted(host.threads, calls.columns["thread"][used])] = True
    threads = _busiest(calls, host)
    threads = threads[counts[threads]] if counts.any() else threads
    # What was launched in the window and ran behind it only says how full queues were.
    inside = work.columns["start"] < window[1] if window is not None else np.ones(len(work), bool)
    ends = np.concatenate((host.last[threads], items.ended[inside]))
    builder.add_edges(ends, np.full(len(ends), last), 0, kind=END, thing=NOTHING)


def _busiest(calls: RecordedCalls, host: Host) -> Int64Array:
    """Return the threads, those with the most calls first."""
    # host.threads is sorted, so the place of a thread in it is its number from 0 on.
    number = np.bincount(np.searchsorted(host.threads, calls.columns["thread"]), minlength=len(host.threads))
    return np.argsort(-number, kind="stable")
