"""Calls of the C library and of the system: the tables `osrt`, `file_access` and `syscalls`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.convert.cpu import os_words
from warplens.importers.nsys.calls import enclosing
from warplens.importers.nsys.chains import Chains
from warplens.importers.nsys.database import LATEST
from warplens.importers.nsys.names import encoded
from warplens.importers.nsys.ranges import NsysRanges
from warplens.importers.nsys.taken import NsysContext, NsysEvents
from warplens.importers.rows import numbered

_ACCESS, _OPENED = "OSRT_FILE_ACCESS_EVENTS", "OSRT_FILE_ACCESS_DESCRIPTORS"
_LIBRARY, _SYSTEM = "OSRT_API", "SYSCALL"


def osrt(context: NsysContext, ranges: NsysRanges, chains: Chains) -> None:
    """Write `osrt`."""
    rows = context.read(_LIBRARY, ["start", "end", "globalTid", "nameId", "returnValue", "callchainId"])
    context.tally.used.add("OSRT_ARGUMENTS")
    events = NsysEvents.sorted(context, rows, "globalTid", table=_LIBRARY)
    rows = events.rows
    thread = context.identity.thread(rows.ints("globalTid"))
    around = enclosing(ranges, thread, events.start)
    names = encoded(context.database, rows.ints("nameId"), np.ones(len(rows), bool))
    context.write(
        "osrt",
        {
            **events.timed(),
            "thread": thread,
            "name": names,
            "group": _changed(names, os_words.group),
            "result": rows.ints("returnValue"),
            "stack": _stacks(chains, "OSRT_CALLCHAINS", events),
            "range": pa.array(around, pa.int64(), mask=around < 0),
        },
    )


def syscalls(context: NsysContext, chains: Chains) -> None:
    """Write `syscalls`."""
    events = NsysEvents.sorted(
        context,
        context.read(_SYSTEM, ["start", "end", "globalTid", "nameId", "callchainId"]),
        "globalTid",
        table=_SYSTEM,
    )
    rows = events.rows
    context.write(
        "syscalls",
        {
            **events.timed(),
            "thread": context.identity.thread(rows.ints("globalTid")),
            "name": encoded(context.database, rows.ints("nameId"), np.ones(len(rows), bool)),
            "stack": _stacks(chains, "SYSCALL_CALLCHAINS", events),
        },
    )


def file_access(context: NsysContext) -> None:
    """Write `file_access`: accesses with the file of the descriptor that they name."""
    context.tally.used |= {_ACCESS, _OPENED}
    rows = context.database.read(
        _ACCESS, ["fileAccessId", "threadId", "startedAt", "endedAt", "apiCallId", "bytesProcessed"]
    )
    opened = context.database.read(_OPENED, ["fileAccessId"], texts=["filePath"])
    paths = dict(zip(opened.ints("fileAccessId").tolist(), opened.texts("filePath").to_pylist(), strict=True))
    times = rows.ints("startedAt"), rows.ints("endedAt")
    good = rows.valid("startedAt") & context.identity.knows(rows.ints("threadId"))
    for column in times:
        good &= (column <= LATEST) & (column >= -LATEST)
    if not good.all():
        message = f"rows of {_ACCESS} without a thread or a time that can be were left out"
        context.tally.say("warning", "no-time", message, int((~good).sum()))
    rows = rows.taken(good)
    start, end = rows.ints("startedAt"), np.maximum(rows.ints("startedAt"), rows.ints("endedAt"))
    process = context.identity.process(rows.ints("threadId"))
    order = np.lexsort((-end, start, process))
    rows, process, start, end = rows.taken(order), process[order], start[order], end[order]
    names = encoded(context.database, rows.ints("apiCallId"), np.ones(len(rows), bool))
    operation = _changed(names, os_words.operation)
    moved = np.isin(operation.cast(pa.string()).to_numpy(zero_copy_only=False), ("read", "write"))
    context.write(
        "file_access",
        {
            "id": numbered(process),
            "process": process,
            "thread": context.identity.thread(rows.ints("threadId")),
            "start": start,
            "end": end,
            "name": names,
            "operation": operation,
            "path": pa.array(
                [paths.get(number) or None for number in rows.ints("fileAccessId").tolist()], pa.string()
            ).dictionary_encode(),
            "bytes": pa.array(
                rows.ints("bytesProcessed"), pa.int64(), mask=~(moved | (rows.ints("bytesProcessed") > 0))
            ),
        },
    )


def _stacks(chains: Chains, table: str, events: NsysEvents) -> pa.Array:
    rows = events.rows
    return chains.stacks(table, events.process, rows.ints("callchainId"), rows.valid("callchainId"))


def _changed(names: pa.DictionaryArray, change: Any) -> pa.DictionaryArray:
    """Return a dictionary column with what becomes of each name."""
    values = pa.array([change(name) for name in names.dictionary.to_pylist()], pa.string())
    return pc.take(values, names.indices).dictionary_encode() if len(values) else names
