"""Waits for the GPU, and CUDA events that were recorded: the tables `syncs` and `cuda_events`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from warplens.importers.nsys.database import LATEST
from warplens.importers.nsys.names import labelled
from warplens.importers.nsys.taken import NsysContext, NsysEvents, narrow
from warplens.importers.rows import numbered
from warplens.model.nsys_labels import SYNC_KINDS

_NONE = 0xFFFFFFFF  # "no event", "no stream"
_PLACE = ("deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId", "eventSyncId")


def syncs(context: NsysContext) -> None:
    """Write `syncs`."""
    table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    rows = context.read(table, ["start", "end", *_PLACE, "syncType", "deprecatedSyncType"])
    events = NsysEvents.sorted(context, rows, "globalPid", table=table)
    rows = events.rows
    kind = np.where(rows.ints("syncType") != 0, rows.ints("syncType"), rows.ints("deprecatedSyncType"))
    about_event = rows.valid("eventId") & (rows.ints("eventId") & _NONE != _NONE)
    has_stream = rows.valid("streamId") & (rows.ints("streamId") & _NONE != _NONE)
    context.write(
        "syncs",
        {
            **events.timed(),
            "kind": labelled(kind, np.ones(len(rows), bool), SYNC_KINDS),
            "context": events.optional("contextId"),
            "stream": pa.array(rows.ints("streamId"), pa.int64(), mask=~has_stream),
            "event": pa.array(rows.ints("eventId"), pa.int64(), mask=~about_event),
            "event_sync": pa.array(
                rows.ints("eventSyncId"), pa.int64(), mask=~(about_event & rows.valid("eventSyncId"))
            ),
            **events.called(context),
        },
    )


def cuda_events(context: NsysContext) -> None:
    """Write `cuda_events`.

    Where the file does not say when the GPU came to one, that of the API call counts.
    """
    table = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
    rows = context.database.read(table, ["timestamp", *_PLACE])
    context.tally.used.add(table)
    process = context.identity.process(rows.ints("globalPid"))
    correlation = rows.ints("correlationId")
    called = rows.valid("correlationId") & (correlation != 0)
    begins, known = context.calls.begins(process, correlation, called)
    times = rows.ints("timestamp")
    # 0: not known
    timed = rows.valid("timestamp") & (times != 0) & (times >= -LATEST) & (times <= LATEST)
    start = np.where(timed, times, np.where(known, begins, LATEST))
    order = np.lexsort((start, process))
    rows, process, start, known = rows.taken(order), process[order], start[order], (timed | known)[order]
    events = NsysEvents(rows, process, start=start, end=start)
    context.write(
        "cuda_events",
        {
            "id": numbered(process),
            "process": process,
            "device": pa.array(narrow(rows.ints("deviceId")), pa.int32(), mask=~rows.valid("deviceId")),
            "context": rows.ints("contextId"),
            "stream": rows.ints("streamId"),
            "start": pa.array(start, pa.int64(), mask=~known),
            "event": rows.ints("eventId"),
            "event_sync": events.optional("eventSyncId"),
            **events.called(context),
        },
    )
