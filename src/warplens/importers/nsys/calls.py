"""The table `cuda_api`: calls of the CUDA runtime and driver."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.nsys.chains import Chains
from warplens.importers.nsys.names import encoded, labelled
from warplens.importers.nsys.ranges import NsysRanges
from warplens.importers.nsys.taken import NsysCalls, NsysContext, NsysEvents, join, narrow

_TABLE = "CUPTI_ACTIVITY_KIND_RUNTIME"
_VERSION = re.compile(r"_v\d{4,}$")  # the runtime's; `_v2` of a driver's function is part of its name
_KINDS = {0: "runtime", 1: "driver"}


def write(context: NsysContext, ranges: NsysRanges, chains: Chains) -> None:
    """Write `cuda_api`, and keep in `context` how GPU work finds its call."""
    rows = context.read(
        _TABLE,
        ["start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId"],
    )
    events = NsysEvents.sorted(context, rows, "globalTid", table=_TABLE)
    rows = events.rows
    always = np.ones(len(rows), bool)
    correlation, ids = rows.ints("correlationId"), events.ids()
    thread = context.identity.thread(rows.ints("globalTid"))
    around = enclosing(ranges, thread, events.start)
    context.write(
        "cuda_api",
        {
            **events.timed(),
            "thread": thread,
            "api": labelled(rows.ints("eventClass"), always, _KINDS),
            "name": encoded(
                context.database, rows.ints("nameId"), always, change=lambda name: _VERSION.sub("", name)
            ),
            "result": narrow(rows.ints("returnValue")),
            "correlation": correlation,
            "range": pa.array(around, pa.int64(), mask=around < 0),
            "stack": chains.stacks(
                "CUDA_CALLCHAINS", events.process, rows.ints("callchainId"), rows.valid("callchainId")
            ),
        },
    )
    keys = join(events.process, correlation)
    order = np.argsort(keys, kind="stable")
    keys, ids, starts = keys[order], ids[order], events.start[order]
    first = (
        np.concatenate([[True], keys[1:] != keys[:-1]]) & (keys & 0xFFFFFFFF != 0)
        if len(keys)
        else np.empty(0, bool)
    )
    context.calls = NsysCalls(keys[first], ids[first], starts[first])


def enclosing(ranges: NsysRanges, thread: Int64Array, at: Int64Array) -> Int64Array:
    """Return the id of the innermost push/pop range of each thread that is open at each time.

    -1 if none is.
    """
    enclosing_id = np.full(len(at), -1, np.int64)
    for key, mine in ranges.of_threads(np.unique(thread)):
        asked = np.flatnonzero(thread == key)
        place = np.searchsorted(mine.start, at[asked], side="right") - 1
        # What began last may be over: then what was around it is asked. No more rounds than ranges are nested.
        while len(over := np.flatnonzero((place >= 0) & (mine.end[np.maximum(place, 0)] <= at[asked]))):
            place[over] = mine.parent[place[over]]
        inside = place >= 0
        enclosing_id[asked[inside]] = mine.id[place[inside]]
    return enclosing_id
